"""Published protocols, as cards: each says which metric is computed, of which samples, and against which reference."""
