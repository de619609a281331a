"""The law sees numbers that break their promise in either direction, and passes those that keep it."""

import pytest
from _law import Design, Drawn, Holds, PValue, StandardError, faults_of
from scipy.stats import norm

RUNS = 300


def mean(rng, wider=1.0, shift=0.0, count=1):
    """Means of 25 normal numbers, with their interval and standard error."""
    for _ in range(count):
        values = rng.normal(size=25)
        center, error = values.mean() + shift, wider * 0.2
        yield Drawn("interval", center, (center - 1.96 * error, center + 1.96 * error), 0.0)
        yield Drawn("error", center, error=error)


def p_value(rng, power=1.0, small=0.0, effect=0.0, count=1):
    """P-values of means, to a power; a part of them is small by mistake."""
    for z in rng.normal(effect, size=count):
        p = float(2 * norm.sf(abs(z))) ** power
        yield Drawn("p", 0.0 if rng.random() < small else p, is_null=not effect)


def faults(draw, promise, number):
    """Return the faults of a number of a design."""
    names = ("p",) if number == "p" else ("interval", "error")
    return faults_of(Design("a design", "large", names, draw), dict.fromkeys(names, NOTHING) | {number: promise}, RUNS)


class Nothing:
    """A promise that holds always."""

    def measure(self, drawn):
        return {}

    def faults(self, measured, count):
        return []


NOTHING = Nothing()


@pytest.mark.parametrize(
    "options, promise, number, fault",
    [
        ({}, Holds(), "interval", None),
        ({"wider": 0.6}, Holds(), "interval", "misses"),
        ({"wider": 2.0}, Holds(), "interval", "half-width is"),
        ({"shift": 0.4}, Holds(), "interval", "misses"),
        ({"count": 3}, Holds(), "interval", None),
        ({"count": 3}, Holds(together=True), "interval", "misses"),
        ({"wider": 1.3, "count": 3}, Holds(together=True), "interval", None),
        ({"wider": 2.0, "count": 3}, Holds(together=True), "interval", "half-width is"),
        ({}, StandardError(), "error", None),
        ({"wider": 2.0}, StandardError(), "error", "of the standard deviation"),
        ({"wider": 0.5}, StandardError(), "error", "of the standard deviation"),
    ],
)
def test_intervals_and_errors_that_are_wrong_are_seen(options, promise, number, fault):
    found = faults(lambda rng: mean(rng, **options), promise, number)
    assert [one for one in found if fault and fault in one] if fault else found == []


@pytest.mark.parametrize(
    "options, promise, fault",
    [
        ({}, PValue(exact=True), None),
        ({"power": 2.0}, PValue(), "p ≤ 0.05 in"),
        ({"small": 0.2}, PValue(), "p ≤ 0.05 in"),
        ({"power": 0.3}, PValue(), None),
        ({"power": 0.3}, PValue(exact=True), "in only"),
        ({"count": 3}, PValue(), None),
        ({"count": 3}, PValue(together=True), "p ≤ 0.05 in"),
        ({"effect": 4.0}, PValue(), None),
        ({"effect": 4.0, "power": 0.1}, PValue(), "of those with an effect"),
    ],
)
def test_p_values_that_are_wrong_are_seen(options, promise, fault):
    found = faults(lambda rng: p_value(rng, **options), promise, "p")
    assert [one for one in found if fault and fault in one] if fault else found == []


def test_a_design_draws_what_it_says():
    with pytest.raises(ValueError, match="more or fewer"):
        faults_of(Design("a design", "large", ("interval",), mean), {"interval": NOTHING, "error": NOTHING}, 2)


def test_few_repetitions_leave_more_room():
    narrow = lambda rng: mean(rng, wider=0.7)  # noqa: E731
    design = Design("a design", "large", ("interval", "error"), narrow)
    promises = {"interval": NOTHING, "error": StandardError()}
    assert faults_of(design, promises, 5) == [] and faults_of(design, promises, RUNS) != []
