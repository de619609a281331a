"""Small pictures of the samples that a result shows: made, read from where the samples are, and kept in its file."""
