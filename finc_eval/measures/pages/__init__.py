"""The page of scores."""
