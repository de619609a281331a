"""The numbers people know, as the trusted implementations compute them, from embeddings, caches, sketches or files."""
