"""Private sketches: reference data released once, with noise, and scored against for ever."""
