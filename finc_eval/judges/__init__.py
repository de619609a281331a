"""Votes of people, and scores of samples by any judge, as estimates of models."""
