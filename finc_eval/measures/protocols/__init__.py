"""Published protocols of a number, as cards: what is computed of which samples, against which reference."""
