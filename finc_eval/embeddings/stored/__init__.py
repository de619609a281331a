"""Parts of the files of embeddings: the journal of an unfinished file, and the block of cells."""
