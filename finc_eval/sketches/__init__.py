"""Sufficient statistics of a set of embeddings; sketches add."""
