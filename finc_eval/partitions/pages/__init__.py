"""The page of kinds, and the cards and tables of kinds on all pages."""
