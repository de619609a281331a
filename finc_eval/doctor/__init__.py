"""Diagnosis of an installation, and comparison of its numbers with those of other libraries."""
