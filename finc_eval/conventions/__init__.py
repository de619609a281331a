"""Which convention explains a number that somebody else printed for the same samples."""
