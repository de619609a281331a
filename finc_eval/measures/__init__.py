"""Metrics people know, computed as the trusted implementations do, from embeddings, caches, sketches or files."""
