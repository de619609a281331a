"""Drawings of a page: SVG with a title, a description and a table next to it."""
