"""What a pipeline reads of a verdict: JUnit XML, Markdown, and the outputs of GitHub Actions."""
