"""What a result says in all of its outputs, how it was made, and the same as Markdown."""
