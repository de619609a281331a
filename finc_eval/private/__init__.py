"""The wing of privacy: budgets, private sketches, synthesis, Hermite features, kernel affine hull machines.

No room imports it. What needs a part of it looks the part up by its name (`finc_eval/wing.py`).
"""
