"""Diagnosis of an installation, and comparison of its numbers with numbers of other libraries."""
