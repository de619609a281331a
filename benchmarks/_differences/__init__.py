"""A public benchmark of tools that say how two sets of pictures or clips differ: cases, a judge, simple rivals."""
