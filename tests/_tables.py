"""Tables of cases: every value of every axis once, in place of all combinations."""

from itertools import cycle, islice


def every_value(*axes):
    """Return as few cases as hold every value of every axis: one value of each, side by side."""
    return list(zip(*(islice(cycle(axis), max(map(len, axes))) for axis in axes), strict=True))
