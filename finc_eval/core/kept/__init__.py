"""Folders to which commands add over months, and the files that say what is in them."""
