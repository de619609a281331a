"""Exact nearest neighbors of sets of any size: blocks of distances, and the k smallest over a stream of them."""
