"""Leaderboards: several models against one reference, ranked as far as their differences are certain."""
