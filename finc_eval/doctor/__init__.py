"""Diagnosis of an installation, and parity of its numbers with other libraries."""
