"""Designs of drifts of clips: the interval of the frame from which they drift."""

from functools import partial

import numpy as np
from _law import Design, Drawn, Holds

import finc_eval as fe
from finc_eval.findings.over_time import find_drifts
from finc_eval.naming.measured import Measured, PictureLooks
from finc_eval.naming.traits import COURSE, SIDE, MeasuredCourse
from finc_eval.numerics.courses import NOTHING

NUMBERS = ("Finding.first_frame_interval",)
PROMISES = {NUMBERS[0]: Holds(width=None, why="ends are frames, by resampled clips")}
FRAMES = 100


def drifting(rng, clips, start, share, step):
    """Clips whose brightness wanders, and in a share of them grows from a frame on, or changes at once."""
    sets, measured = {}, {}
    for label in ("gen", "ref"):
        shocks = rng.normal(0, 0.008, (clips, FRAMES, len(COURSE)))
        values = 0.5 + np.cumsum(shocks, 1)
        later = np.maximum(0, np.arange(FRAMES) - start)
        growth = 0.3 * (later > 0) if step else 0.008 * later
        values[: round(share * clips) * (label == "gen"), :, COURSE.index("brightness")] += growth
        courses = tuple(MeasuredCourse(np.arange(FRAMES) / 25, one.astype(np.float32), NOTHING, None) for one in values)
        looks = PictureLooks(np.empty((0, 0)), np.empty((0, SIDE**2), np.int8), np.empty((0, 5)), {}, courses=courses)
        sets[label] = fe.EmbeddingSet(np.zeros((clips, 2)))
        measured[label] = Measured(np.arange(clips), np.empty((clips, 0)), looks)
    found = find_drifts(sets, ((), measured), int(rng.integers(1000)))
    (finding,) = [held.finding for held in found if held.finding.name == "with rising brightness"]
    yield Drawn(NUMBERS[0], finding.first_frame, ends=finding.first_frame_interval, truth=start + step)


def _design(name, regime, runs, quick, **options):
    return Design(name, regime, NUMBERS, partial(drifting, **{"share": 1.0, "step": False} | options), runs, quick)


DESIGNS = (
    _design("40 clips that get brighter from frame 40 on", "small", 100, 4, clips=40, start=40),
    _design("40 clips that get brighter from the first frame on", "small", 100, 2, clips=40, start=0),
    _design("40 clips that are brighter from frame 60 on", "small", 100, 2, clips=40, start=60, step=True),
    _design("100 clips, of which 30 get brighter from frame 40 on", "rare", 60, 2, clips=100, start=40, share=0.3),
)
