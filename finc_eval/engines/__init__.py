"""What data engines call on their workers: an embedder of batches, and a sketch as a sum."""
