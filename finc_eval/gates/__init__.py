"""The gate: may a release replace the one before it? Intervals against margins, and an exit code."""
