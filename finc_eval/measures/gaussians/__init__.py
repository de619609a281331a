"""Gaussians fitted to sets, their files, and the error of a Fréchet distance between two of them."""
