"""Limits on what is known of a release beside its kinds: their tables, and the evidence on membership."""
