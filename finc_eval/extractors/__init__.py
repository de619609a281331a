"""From samples to vectors: cards, weights, preprocessing and networks."""
