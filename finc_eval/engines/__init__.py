"""Embedder and sum that data engines call on their workers."""
