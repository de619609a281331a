"""Pages of comparisons, methods, sweeps, changes and spaces, and the cards of directions."""
