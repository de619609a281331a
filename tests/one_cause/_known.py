"""Places where a verb gives a cause a wrong first name today. The test fails until a mended place is removed here."""

KNOWN = {
    ("JPEG", "same ids"): "turned gray",
    ("noise", "same ids"): "brighter at the edges",
    ("gray", "same ids"): "turned gray",
    ("lost kind", "compare"): "streaked up and down",
    ("lost kind", "leaderboard"): "streaked up and down",
    ("lost kind", "same ids"): "another picture",
    ("new kind", "same ids"): "another picture",
    ("repeats", "same ids"): "one and the same picture",
    ("copies", "gate"): "20 % of samples copy reference samples",
    ("copies", "same ids"): "another picture",
    ("misdrawn word", "compare"): "darker, grayer",
    ("misdrawn word", "gate"): "brighter at the top than at the bottom",
    ("misdrawn word", "leaderboard"): "samples that are darker, grayer",
    ("misdrawn word", "same ids"): "another picture",
}
"""Today's first name, by cause and verb, where it is not that of the cause."""

BLIND = (("copies", "compare"), ("copies", "leaderboard"))
"""Places where a verb says nothing, as it does not look for the cause: larger sets would not help (`power.json`)."""

SILENT: tuple[tuple[str, str], ...] = ()
"""Places where a verb may say nothing, as its test has no power at this size, and has it at twice the size."""

ALARMS: dict[str, set[str]] = {}
"""Faults of a monitor, by cause: more than two alarms, and alarms that are dated before the change."""
