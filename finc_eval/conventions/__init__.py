"""Conventions that explain a number that somebody else printed for the same samples."""
