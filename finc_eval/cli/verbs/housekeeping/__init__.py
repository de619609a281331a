"""Verbs about the installation: extractors, weights, caches, schemas and diagnosis."""
