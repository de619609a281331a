"""Label-blind partitions of embeddings into kinds: counts, exact tests, and how different sets are."""
