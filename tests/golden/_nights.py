"""Nights of golden pictures: smooth random scenes, noise of an engine, and floors made of them without files."""

from functools import cache

import numpy as np
from scipy.ndimage import gaussian_filter

from finc_eval.golden.floor import Floor, PastNight
from finc_eval.golden.golden import _rows, _verdict
from finc_eval.golden.judging import judge_night
from finc_eval.golden.measured import measure_night
from finc_eval.golden.pictures import match_pictures

SIDE = 32


def as_pixels(values):
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


@cache
def scenes(count):
    """Colorful smooth scenes with details, by id: p00, p01 …"""
    rng = np.random.default_rng(7)
    found = {}
    for number in range(count):
        fields = [gaussian_filter(rng.normal(size=(SIDE, SIDE, 3)), (width, width, 0)) for width in (5, 1.5)]
        values = sum(part * field / field.std() for part, field in zip((50, 20), fields, strict=True))
        found[f"p{number:02d}"] = as_pixels(120 + values)
    return found


def noisy(picture, rng, deviation=2.0):
    return as_pixels(picture + rng.normal(0, deviation, picture.shape))


class Year:
    """Nights in memory, which are judged as `Golden.add` judges them.

    Attributes:
        floor: the floor so far.
        verdicts: verdict of each night.
    """

    def __init__(self, pairs=2, seed=0):
        self.golden, self.rng = scenes(pairs), np.random.default_rng(seed)
        self.floor, self.verdicts, self.judged = Floor([], {}), [], []

    def night(self, change=None, machine=None, golden=None):
        """Add a night of usual noise, or of a change, a function of picture and random numbers."""
        golden = golden or self.golden
        change = change or noisy
        found = match_pictures({name: change(one, self.rng) for name, one in golden.items()}, golden)
        tonight, _ = measure_night(found)
        judged = judge_night(self.floor, tonight, machine)
        verdict = _verdict(judged, tonight, found)
        kept = PastNight(f"night {len(self.floor.nights)}", machine)
        kept.rows.update((row.id, row) for row in _rows(tonight, judged, kept.name, machine, verdict))
        self.floor.nights.append(kept)
        self.verdicts.append(verdict)
        self.judged.append(judged)
        return verdict

    def nights(self, count, **how):
        return [self.night(**how) for _ in range(count)]
