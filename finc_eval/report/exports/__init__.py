"""Contents that all outputs of a result share, the way it was made, and Markdown."""
