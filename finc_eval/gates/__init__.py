"""The gate: may a release replace the release before it? Intervals against margins, and an exit code."""
