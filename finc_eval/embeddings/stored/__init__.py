"""What lies in the files of embeddings: the journal of unfinished ones, and the block of cells."""
