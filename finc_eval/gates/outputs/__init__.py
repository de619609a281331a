"""Outputs of a verdict for pipelines: JUnit XML, Markdown, and files for GitHub Actions."""
