"""Vectors of a set: arrays and caches, how they are extracted, and exact nearest neighbors."""
