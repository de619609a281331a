"""Places where a verb gives a cause a wrong first name today. The test fails until a mended place is removed here."""

KNOWN = {}
"""Today's first name, by cause and verb, where it is not that of the cause."""

BLIND: tuple[tuple[str, str], ...] = ()
"""Places where a verb says nothing, as it does not look for the cause: larger sets would not help (`power.json`)."""

SILENT: tuple[tuple[str, str], ...] = ()
"""Places where a verb may say nothing, as its test has no power at this size, and has it at twice the size."""

ALARMS: dict[str, set[str]] = {}
"""Faults of a monitor, by cause: more than two alarms, and alarms that are dated before the change."""
