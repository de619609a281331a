"""Designs of what is read from a private sketch, and of the noise of a release."""

from functools import partial
from unittest import mock

import numpy as np
import torch
from _law import Design, Drawn, Holds, NoClaim, PValue, StandardError
from _ranked import drawn_p_values, drawn_ranks, ranked

from finc_eval.core.signature import Signature
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.leaderboards.columns import Column
from finc_eval.private.dp import gaussian_mechanism
from finc_eval.private.dp.guarantee import Guarantee
from finc_eval.private.reference import mean_distance
from finc_eval.private.reference.mean_distance import NoisyMean, SampleMean, sample_mean
from finc_eval.private.reference.result import estimate_part, estimate_parts, paired_differences
from finc_eval.private.synthesis.dp_hp import Statistic, release_embedding

LEVEL = "the level that was asked for"
ONE_SIDED = "farther above the value than below, so that it holds where the value is small by chance"
CUT = "what is known of the variance along the difference is cut off at 0, which matters where nothing differs"
PROMISES = {
    "Part.interval": Holds(width=(0.8, 2.0), why=ONE_SIDED),
    "Part.standard_error": StandardError(right=(0.85, 1.35), why=CUT),
    "PrivateScore.interval": Holds(width=(0.8, 1.7), why=ONE_SIDED),
    "PrivateScore.standard_error": StandardError(right=(0.85, 1.25), why=CUT),
    "PrivateScore.noise_interval": Holds(width=(0.45, 1.35), why="exact; shorter where it ends at equal sets"),
    "PrivateScore.smallest_detected": Holds(),
    "PrivateScore.confidence": NoClaim(LEVEL),
    "PrivateComparison.confidence": NoClaim(LEVEL),
    "PairedDifference.interval": Holds(),
    "PairedDifference.standard_error": StandardError(),
    "PairedDifference.p_value": PValue(together=True),
    "ReleasedPart.noise": StandardError(),
}
WHOLE = ("PrivateScore.interval", "PrivateScore.standard_error")
PARTS = ("Part.interval", "Part.standard_error")
PAIRS = ("PairedDifference.interval", "PairedDifference.standard_error")
RANKED = ("Standing.rank_set", "Row.rank_set")


def release(rng, records, noise):
    """Release the mean of features of records (m, A) with noise, and what their variance is by the same release."""
    mean = torch.from_numpy(records.mean(0) + noise * rng.normal(size=records.shape[1]))
    square = float((records**2).sum(1).mean() + 10 * noise * rng.normal())
    return NoisyMean(mean, noise, mean_distance.sampling_variance(mean, noise, square, len(records)))


def features(rng, n, size, shift=0.0):
    """Features of unlike spread, (n, A), whose first half is shifted."""
    found = rng.normal(size=(n, size)) * np.linspace(0.5, 1.5, size)
    found[:, : size // 2] += shift
    return found


def scored(rng, m, n, size, noise, shift):
    """A score and its two parts: features with a shift, and features without."""
    ref = release(rng, features(rng, m, size), noise)
    gen = sample_mean([torch.from_numpy(features(rng, n, size, shift))])
    half = size // 2
    whole, truth = estimate_part("all", ref, gen, 0.95), half * shift**2
    yield Drawn("PrivateScore.interval", whole.value, whole.interval, truth)
    yield Drawn("PrivateScore.standard_error", whole.value, truth=truth, error=whole.standard_error)
    entries = {"shifted": torch.arange(half), "equal": torch.arange(half, size)}
    for part, of_part in zip(estimate_parts(ref, gen, entries, 0.95), (truth, 0.0), strict=True):
        yield Drawn("Part.interval", part.value, part.interval, of_part, of=part.name)
        yield Drawn("Part.standard_error", part.value, truth=of_part, error=part.standard_error, of=part.name)


def noise_alone(rng, size, noise, shift):
    """Sets at hand, without sampling: an interval of their distance, and what the noise hides."""
    exact, still = torch.zeros(size, dtype=torch.double), torch.zeros(size, size, dtype=torch.double)
    ref = NoisyMean(exact + noise * torch.from_numpy(rng.normal(size=size)), noise, 0.0)
    gen = SampleMean(10, exact + shift, still)
    value, truth = mean_distance.squared_distance(ref, gen), size * shift**2
    yield Drawn("PrivateScore.noise_interval", value, mean_distance.noise_interval(ref, gen, 0.95), truth)
    if shift == 0:
        hidden = mean_distance.smallest_detected(ref, 0.95)
        yield Drawn("PrivateScore.smallest_detected", value, (value - hidden, value + hidden), 0.0)


def compared(rng, m, n, size, noise, shifts):
    """Generators against one release; those with equal shifts do not differ."""
    ref = release(rng, features(rng, m, size), noise)
    gens = {
        f"{place}": sample_mean([torch.from_numpy(features(rng, n, size, shift))]) for place, shift in enumerate(shifts)
    }
    for pair in paired_differences(ref, gens, 0.95):
        one, other = (size // 2 * shifts[int(name)] ** 2 for name in (pair.first, pair.second))
        of = f"{pair.first} and {pair.second}"
        yield Drawn("PairedDifference.interval", pair.value, pair.interval, one - other, of=of)
        yield Drawn("PairedDifference.standard_error", pair.value, truth=one - other, error=pair.standard_error, of=of)
        if one == other:
            yield Drawn("PairedDifference.p_value", pair.p_value)
        else:
            yield Drawn("PairedDifference.p_value", pair.p_value, is_null=False, of="unlike")


def private_board(rng, m, n, size, noise, shifts):
    """Models on a board on one release; those with equal shifts share a rank."""
    ref = release(rng, features(rng, m, size), noise)
    gens = [sample_mean([torch.from_numpy(features(rng, n, size, shift))]) for shift in shifts]
    names = [f"m{place}" for place in range(len(shifts))]
    runs = {name: [found] for name, found in zip(names, mean_distance.compared(ref, gens), strict=True)}
    column = Column("private.distance", "", higher_is_better=False, signature=Signature("private", ()), runs=runs)
    worth = {name: -shift for name, shift in zip(names, shifts, strict=True)}
    criterion, standings = ranked(column, worth)
    for number in RANKED:
        yield from drawn_ranks(number, {name: one.rank_set for name, one in standings.items()}, worth)
    yield from drawn_p_values(criterion, worth, clear=0.1)


def released(rng, m):
    """Numbers of the release of records that stay the same; two statistics share the budget."""
    fixed = torch.randn(m, 3, generator=torch.Generator().manual_seed(0))
    statistics = [
        Statistic(RandomFourierFeatures(3, 4, sigma=1.0, seed=place), budget=budget)
        for place, budget in enumerate((1.0, 3.0))
    ]
    normal = lambda shape: torch.from_numpy(rng.normal(size=shape))  # noqa: E731
    with mock.patch.object(gaussian_mechanism, "secure_normal", normal):
        found = release_embedding(fixed, None, statistics, Guarantee.of(1.0, 1e-5), ledger=None)
    for place, (mean, scale) in enumerate(zip(found.means, found.scales, strict=True)):
        for entry in (0, 1):
            yield Drawn("ReleasedPart.noise", float(mean[0, entry]), error=scale, of=f"{place}, {entry}")


DESIGNS = (
    Design(
        "a release of 60 records, 40 samples",
        "small",
        WHOLE + PARTS,
        partial(scored, m=60, n=40, size=12, noise=0.1, shift=0.15),
        runs=1500,
        quick=80,
    ),
    Design(
        "a release of 1000 records with loud noise, 30 samples",
        "rare",
        WHOLE + PARTS,
        partial(scored, m=1000, n=30, size=20, noise=0.3, shift=0.0),
        runs=1500,
        quick=0,
    ),
    Design(
        "a release of 400 records, 600 samples",
        "large",
        WHOLE + PARTS,
        partial(scored, m=400, n=600, size=20, noise=0.05, shift=0.5),
        runs=1000,
        quick=60,
    ),
    Design(
        "noise alone between equal sets",
        "large",
        ("PrivateScore.noise_interval", "PrivateScore.smallest_detected"),
        partial(noise_alone, size=60, noise=0.1, shift=0),
        runs=500,
        quick=60,
    ),
    Design(
        "noise alone between unlike sets",
        "small",
        ("PrivateScore.noise_interval",),
        partial(noise_alone, size=5, noise=0.1, shift=0.2),
        runs=500,
        quick=0,
    ),
    Design(
        "three equal generators of 50 samples, one release",
        "small",
        (*PAIRS, "PairedDifference.p_value"),
        partial(compared, m=80, n=50, size=10, noise=0.05, shifts=(0.3, 0.3, 0.3)),
        runs=800,
        quick=50,
    ),
    Design(
        "two equal generators and another of 300 samples, one release",
        "paired",
        (*PAIRS, "PairedDifference.p_value"),
        partial(compared, m=300, n=300, size=10, noise=0.1, shifts=(0.2, 0.2, 0.5)),
        runs=800,
        quick=50,
    ),
    Design(
        "a board of four equal models of 60 samples, one release with loud noise",
        "small",
        (*RANKED, "Criterion.p_values"),
        partial(private_board, m=200, n=60, size=10, noise=0.1, shifts=(0.3, 0.3, 0.3, 0.3)),
        runs=400,
        quick=40,
    ),
    Design(
        "a board of models like the private records, one release",
        "small",
        (*RANKED, "Criterion.p_values"),
        partial(private_board, m=400, n=150, size=10, noise=0.02, shifts=(0.0, 0.0, 0.0)),
        runs=400,
        quick=0,
    ),
    Design(
        "a board of two nearer and two farther models of 200 samples, one release",
        "paired",
        (*RANKED, "Criterion.p_values"),
        partial(private_board, m=300, n=200, size=10, noise=0.05, shifts=(0.1, 0.1, 0.3, 0.3)),
        runs=400,
        quick=40,
    ),
    Design("noise of a release", "small", ("ReleasedPart.noise",), partial(released, m=30), runs=600, quick=80),
)
