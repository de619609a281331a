"""Kinds and directions on which sets differ: FINC, its baselines, and comparisons of many sets."""
