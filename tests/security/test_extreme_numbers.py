"""Numbers of settings beyond all sense end in one sentence, the largest and smallest that are allowed in a result."""

import re
from dataclasses import fields
from functools import partial

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.comparison.settings import METHODS
from finc_eval.core.errors import MAX_COUNT, MAX_POSITIVE, MAX_SEED, MIN_POSITIVE, DataError, FincEvalError, UsageError
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.settings import Extraction
from finc_eval.gates.policy import BasicLimits, CopyingLimits, KindLimits, MetricLimit, Policy
from finc_eval.leaderboards.settings import LeaderboardSettings
from finc_eval.measures.frechet import fd_infinity
from finc_eval.measures.inception_score import inception_score
from finc_eval.measures.kid import kid
from finc_eval.measures.mind import mind
from finc_eval.memorization.settings import AuditSettings
from finc_eval.partitions.settings import KindSettings
from finc_eval.private.kahm.settings import KahmSettings
from finc_eval.private.settings import SYNTHESIS_METHODS, ReleaseSettings, SynthesisSettings
from finc_eval.samples.clips import MAX_FPS, MIN_FPS
from finc_eval.sketches.settings import SketchSettings

GEN, REF = np.random.default_rng(0).normal(size=(2, 60, 4)).astype(np.float32)
OPTIONS = {"features": 20, "modes": 1}

EXTREMES = [2**32, 2**63, 10**60, 10**400, -1, 1e300, 1e-300, 5e-324, -0.0, float("inf"), float("nan")]
"""Numbers that no setting means."""

RECORDS = [
    *(fe.Settings, SketchSettings, KindSettings, LeaderboardSettings, AuditSettings, Extraction, KahmSettings),
    *(Policy, KindLimits, CopyingLimits, BasicLimits, ReleaseSettings, SynthesisSettings, fe.Run),
    *(*METHODS.values(), *SYNTHESIS_METHODS.values()),
]

NEEDED = {
    Policy: {"metrics": {"fd": MetricLimit(most=1.0)}},
    ReleaseSettings: {"epsilon": 1.0},
    SynthesisSettings: {"epsilon": 1.0},
}
"""Fields that a record does not have by itself."""

NUMBERS = [
    (record, field.name)
    for record in RECORDS
    for field in fields(record)
    if field.name != "fps"  # its bounds are those of the extractor's clips, below
    if re.search(r"\b(int|float|FiniteFloat|PositiveInt)\b", str(field.type).partition("about(")[0])
]
"""All fields of settings that are numbers; an infinite epsilon asks for no noise."""


@pytest.mark.parametrize(("record", "name"), NUMBERS, ids=lambda one: getattr(one, "__name__", one))
def test_a_setting_is_a_number_that_is_finite_or_refused_in_one_sentence(record, name):
    for number in EXTREMES:
        try:
            made = getattr(record(**{**NEEDED.get(record, {}), name: number}), name)
        except FincEvalError as error:
            assert len(str(error)) < 1000
        else:
            assert abs(made) <= MAX_POSITIVE or (name, made) == ("epsilon", float("inf")), f"{name} is {made}"


SEEDED = {
    "compare": lambda seed: fe.compare(GEN, REF, **OPTIONS, seed=seed),
    "kinds": lambda seed: fe.kinds(GEN, ref=REF, seed=seed),
    "sketch": lambda seed: SketchSettings(features=20, seed=seed),
    "leaderboard": lambda seed: fe.leaderboard({"a": GEN}, REF, metrics=("kid",), seed=seed),
    "kid": lambda seed: kid(GEN, REF, subset_size=20, subsets=3, seed=seed),
    "mind": lambda seed: mind(GEN, REF, seed=seed),
    "fd_infinity": lambda seed: fd_infinity(GEN, REF, seed=seed),
    "inception_score": lambda seed: inception_score(GEN, splits=2, seed=seed),
}
"""Calls that take a seed."""


@pytest.mark.parametrize("call", SEEDED.values(), ids=SEEDED)
def test_every_call_takes_the_largest_seed_and_refuses_others(call):
    assert call(MAX_SEED) is not None
    for seed, told in ((MAX_SEED + 1, f"at most {MAX_SEED}"), (10**60, f"at most {MAX_SEED}"), (-1, "at least 0")):
        with pytest.raises(UsageError, match=f"seed must be a whole number of {told}, got {seed}"):
            call(seed)


@pytest.mark.one_of_each
@pytest.mark.parametrize("sigma", [MIN_POSITIVE, 1e-30, 1e30, MAX_POSITIVE])
def test_a_bandwidth_within_the_bounds_is_used_or_refused_in_one_sentence(sigma):
    for call in (fe.compare, partial(fe.compare, method="ken")):
        try:
            assert call(GEN, REF, **OPTIONS, sigma=sigma).signature
        except FincEvalError as error:
            assert "overflow" in str(error) or "sigma" in str(error), str(error)


@pytest.mark.parametrize("sigma", [1e300, 1e101, 1e-101, 5e-324, 10**400])
def test_a_bandwidth_beyond_the_bounds_is_refused_with_the_bound(sigma):
    with pytest.raises(UsageError, match=r"sigma must be at (most 1e\+100|least 1e-100), got "):
        fe.compare(GEN, REF, **OPTIONS, sigma=sigma)


@pytest.mark.parametrize("name", ["batch_size", "workers"])
def test_portions_have_the_size_of_a_number_of_the_machine(name):
    with pytest.raises(UsageError, match=f"{name} must be a whole number of at most {MAX_COUNT}"):
        fe.Run(**{name: MAX_COUNT + 1})


@pytest.mark.parametrize(
    ("fps", "told"),
    [
        (1e300, r"fps must be at most 1e\+06, got 1e\+300"),
        (MAX_FPS * 1.1, "fps must be at most"),
        (1e-5, "fps must be at least 0.0001, got 1e-05"),
        (5e-324, "fps must be at least"),
    ],
)
def test_a_rate_of_frames_has_bounds_which_are_told(fps, told):
    with pytest.raises(UsageError, match=told):
        load_card("motion").resampled(fps)


@pytest.mark.parametrize("fps", [MIN_FPS, MAX_FPS])
def test_clips_are_resampled_to_the_slowest_and_the_fastest_rate(fps, tmp_path):
    clips = np.random.default_rng(0).integers(0, 256, (2, 4, 16, 16, 3), dtype=np.uint8)
    assert fe.extract(clips, extractor="motion", fps=fps, out=tmp_path / "x.h5").n == 2


LISTS = {
    "permutations": lambda: fe.kahm.density_difference(GEN, REF, permutations=10**12),
    "synthetic records": lambda: SynthesisSettings(epsilon=1.0, count=10**12),
}
"""Counts for which lists are made."""


@pytest.mark.parametrize("call", LISTS.values(), ids=LISTS)
def test_a_count_of_what_is_listed_is_asked_before_the_list_is_made(call):
    with pytest.raises(DataError, match=r"the list of 1,000,000,000,000 (permutations|records) takes"):
        call()


@pytest.mark.parametrize("bounds", [(), (1.0,), (1.0, 2.0, 3.0), (2.0, 1.0), (1.0, 1.0), (0.0, float("inf"))])
def test_bounds_are_two_finite_numbers(bounds):
    with pytest.raises(UsageError, match="bounds must be two finite numbers, the lower first, got"):
        fe.kahm.ElementNoise(epsilon=1.0, bounds=bounds)
