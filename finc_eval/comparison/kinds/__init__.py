"""Kinds of samples in a comparison: those that clusters find, and what shows one kind joined to one mode."""
