"""Shards of embeddings and of sketches, made by processes that never meet, and joined."""
