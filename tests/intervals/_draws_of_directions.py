"""Designs of directions, names, looks, kinds in several spaces, and of the classifier that tells two sets apart."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import torch
from _law import Design, Drawn, Holds, PValue, StandardError
from scipy.stats import beta, norm

import finc_eval as fe
from finc_eval.comparison.assemble import _Family, share_of
from finc_eval.comparison.estimates import Masses
from finc_eval.comparison.spaces import _find_seen
from finc_eval.naming.looks import look_at
from finc_eval.naming.measured import Measured, looked_rows
from finc_eval.naming.names import name_by_members
from finc_eval.naming.traits import TRAITS
from finc_eval.numerics.inference import mover
from finc_eval.sketches.one_law import KeptSample, separate

TOGETHER = Holds(width=(1.3, 2.0), why="so wide that all of a result hold, from halves that correlate by a half")

PROMISES = {
    "Direction.standard_error": StandardError(
        (1.1, 1.45), why="1.2 of that of independent halves, whose directions may be raised by the same chance"
    ),
    "Direction.interval": TOGETHER,
    "Direction.share_gen_interval": TOGETHER,
    "Direction.share_ref_interval": TOGETHER,
    "Direction.share_difference_interval": TOGETHER,
    "Evidence.p_value": PValue(),
    "Look.interval": Holds(width=None, why="as wide as the part is hard to tell from the rest"),
    "Look.p_value": PValue(),
    "SeenKind.p_value": PValue(),
    "Separability.interval": Holds(width=(0.8, 1.9), why="half of the samples: both folds follow one accident"),
}

LEVEL = 0.3  # s² from which on a sample is a member, in these designs
MORE, LESS = (1.0, 4.0), (0.4, 4.0)  # laws of s², of the set that has more of a direction, and of the other set


def scored(rng, n, laws, size):
    """A set of n samples in groups of `size`, with their s² on directions of these laws; half of it in each fold."""
    values = np.stack([rng.beta(*law, n // size).repeat(size) for law in laws], 1)
    folds = np.split(values, [n // 2 // size * size])
    masses = Masses(
        torch.tensor([float(len(one)) for one in folds]).double(),
        torch.from_numpy(np.stack([one.mean(0) for one in folds])),
        torch.from_numpy(np.stack([one.var(0) for one in folds])),
        torch.full((len(laws),), float(size)).double(),
    )
    found = SimpleNamespace(masses=masses, scores=SimpleNamespace(n=n), sketched=SimpleNamespace(is_testable=True))
    return found, (values >= LEVEL).sum(0)


def directions_of(rng, n, m, size=1, more=MORE, less=LESS, each=2):
    """Directions that one set has more of; their masses are those of held-out samples."""
    roles = ("over",) * each + ("under",) * each
    laws = {"gen": [more if role == "over" else less for role in roles]}
    laws["ref"] = [less if role == "over" else more for role in roles]
    drawn = {label: scored(rng, count, laws[label], size) for label, count in (("gen", n), ("ref", m))}
    sets = {label: one for label, (one, _) in drawn.items()}
    fits = dict.fromkeys(("over", "under"), SimpleNamespace(full=SimpleNamespace(vectors=torch.zeros(1, each))))
    settings = SimpleNamespace(rho=1.0, families=1, parts=(1.0,))
    family = _Family.of(sets, fits, settings, is_paired=False)
    excess = beta.mean(*more) - beta.mean(*less)
    for column, role in enumerate(roles):
        estimate = family.estimates[role]
        value, error = float(estimate.excess[column]), float(estimate.error[column])
        yield Drawn("Direction.interval", value, family._interval_of_excess(role, column), excess)
        yield Drawn("Direction.standard_error", value, truth=excess, error=error)
        shares, truths = {}, {}
        for label in ("gen", "ref"):
            one, members = drawn[label]
            shares[label] = share_of(one, column, int(members[column]), family.confidence)
            truths[label] = float(beta.sf(LEVEL, *laws[label][column]))
            low, share, high = shares[label]
            yield Drawn(f"Direction.share_{label}_interval", share, (low, high), truths[label])
        low, high = (float(end) for end in mover(shares["gen"], shares["ref"]))
        gap = shares["gen"][1] - shares["ref"][1]
        yield Drawn("Direction.share_difference_interval", gap, (low, high), truths["gen"] - truths["ref"])


def names_of_modes(rng, n, modes, members, values, more=0.0):
    """Modes of members that are drawn at random, or that have a value of a column more often; their evidence."""
    label = rng.integers(0, values, n)
    first = np.flatnonzero(rng.random(n) < np.where(label == 0, more, 0.0))[:members]
    rows = [rng.choice(n, members, replace=False) for _ in range(modes)]
    rows[0] = first if more else rows[0]
    metadata = {
        "label": [f"l{one}" for one in label],
        "prompt": [f"a {'red' if one < 0.5 else 'blue'} thing" for one in rng.random(n)],
    }
    one = fe.EmbeddingSet(rng.normal(size=(n, 2)).astype(np.float32), metadata=metadata)
    found = [name.evidence for name in name_by_members([{"gen": np.sort(each)} for each in rows], {"gen": one})]
    p_values = [each.p_value for evidence in found[: 1 if more else None] for each in evidence]
    yield Drawn("Evidence.p_value", min(p_values, default=1.0), is_null=not more)


def looks_of_sets(rng, n, m, share=0.0, size=1, paired=False):
    """Traits of the pictures of two sets: a part of the first has more of a trait.

    Samples are independent, in groups, or for the same prompts.
    """
    traits = tuple(trait for trait in TRAITS if trait.least is None)[:12]
    prompts = rng.normal(size=(max(n, m), len(traits)))
    sets, measured, blocks = {}, {}, {}
    for label, count in (("gen", n), ("ref", m)):
        values = rng.normal(size=(count // size, len(traits))).repeat(size, 0) + 0.1 * rng.normal(size=(count, 12))
        values += 3 * prompts[:count] * paired
        values[: int(share * count * (label == "gen")), 2] += 6 * (1 + 2 * paired)
        ids = [f"{label}{rng.integers(1 << 40)}-{row}" for row in range(count)]
        clips = {"clip": [f"{row // size}" for row in range(count)]} if size > 1 else None
        one = fe.EmbeddingSet(np.zeros((count, 2), np.float32) + rng.normal(size=(count, 2)), ids=ids, metadata=clips)
        sets[label] = one if clips is None else one.grouped("clip")
        rows = looked_rows(sets[label])
        measured[label], blocks[label] = Measured(rows, values[rows]), np.arange(count)
    seed = int(rng.integers(1000))
    found = look_at(sets, seed, blocks if paired else None, known=(traits, measured), exchanges=199)
    yield Drawn("Look.p_value", min((look.p_value for look, _ in found), default=1.0), is_null=not share)
    if share:
        look = next(look for look, _ in found if look.trait == traits[2].name)
        yield Drawn("Look.interval", look.share_gen, look.interval, share)


def kinds_in_spaces(rng, spaces, shared, shift=0.0):
    """Kinds of several spaces, which see the same samples in part; of each space, one that may differ."""
    both = rng.normal()
    z = np.sqrt(shared) * both + np.sqrt(1 - shared) * rng.normal(size=spaces) + shift
    p_values = 2 * norm.sf(np.abs(z))
    known = {
        f"s{place}": SimpleNamespace(kinds=[SimpleNamespace(id="k0", p_value=float(p), share_difference=1.0)])
        for place, p in enumerate(p_values)
    }
    common = {(a, b): np.ones((1, 1), np.int64) for a in known for b in known if a != b}
    found = _find_seen(known, common)
    yield Drawn("SeenKind.p_value", min((one.p_value for one in found), default=1.0), is_null=not shift)


def classified(rng, n, m, dim, apart, size=1):
    """Two sets whose means are apart, or not; samples of a group are the same."""
    kept = []
    for name, count, shift in (("g", n, apart), ("r", m, 0.0)):
        rows = (rng.normal(size=(count // size, dim)) + shift / np.sqrt(dim)).repeat(size, 0)
        ids = [f"{name}{rng.integers(1 << 40)}-{row}" for row in range(len(rows))]
        one = fe.EmbeddingSet(rows.astype(np.float32), ids=ids)
        if size > 1:
            one = one.with_groups("clip", [f"{row // size}" for row in range(len(rows))])
        kept.append(KeptSample.of(one))
    found = separate(*kept)
    yield Drawn("Separability.interval", found.value, found.interval, None if apart else 0.5)


NUMBERS = tuple(name for name in PROMISES if name.startswith("Direction"))


def _directions(name, regime, runs, quick, **options):
    return Design(name, regime, NUMBERS, partial(directions_of, **options), runs, quick)


def _modes(name, regime, runs, quick, **options):
    return Design(name, regime, ("Evidence.p_value",), partial(names_of_modes, **options), runs, quick)


def _spaces(name, runs, quick, **options):
    return Design(name, "paired", ("SeenKind.p_value",), partial(kinds_in_spaces, **options), runs, quick)


def _apart(name, regime, runs, quick, **options):
    return Design(name, regime, ("Separability.interval",), partial(classified, **options), runs, quick)


def _looks(name, regime, runs, quick, **options):
    numbers = ("Look.p_value", *["Look.interval"] * ("share" in options))
    return Design(name, regime, numbers, partial(looks_of_sets, **options), runs, quick)


DESIGNS = (
    _looks("looks of 40 and 60 samples of one law", "small", 150, 10, n=40, m=60),
    _looks("looks of samples in groups of four", "clustered", 100, 6, n=160, m=160, size=4),
    _looks("looks of the same prompts", "paired", 100, 0, n=60, m=60, paired=True),
    _looks("a look of a tenth of a set", "rare", 100, 3, n=300, m=300, share=0.1),
    _looks("a look of two fifths of 60 samples", "small", 100, 3, n=60, m=80, share=0.4),
    _looks("a look of a fifth of samples in groups of four", "clustered", 100, 0, n=320, m=320, share=0.2, size=4),
    _looks("a look of a fifth of the same prompts", "paired", 100, 0, n=100, m=100, share=0.2, paired=True),
    _directions("directions of 80 and 100 samples", "small", 1000, 40, n=80, m=100),
    _directions("directions of 400 and 600 samples in groups of four", "clustered", 1000, 30, n=400, m=600, size=4),
    _directions("directions of 2000 and 3000 samples", "large", 400, 0, n=2000, m=3000),
    _directions(
        "directions that few samples are of", "rare", 1000, 0, n=400, m=2000, more=(0.3, 5.0), less=(0.1, 5.0), each=1
    ),
    _modes("modes of random members", "small", 200, 8, n=300, modes=4, members=20, values=10),
    _modes("modes of random members, of rare values", "rare", 100, 0, n=600, modes=4, members=40, values=60),
    _modes("a mode of a value", "large", 50, 6, n=400, modes=2, members=30, values=10, more=1.0),
    _spaces("kinds in three spaces", 1000, 100, spaces=3, shared=0.5),
    _spaces("kinds that differ in three spaces", 200, 40, spaces=3, shared=0.5, shift=4.0),
    _apart("two sets of 60 and 90 of one law", "small", 300, 30, n=60, m=90, dim=4, apart=0.0),
    _apart("two sets of 300 that are apart", "large", 200, 20, n=300, m=300, dim=8, apart=1.0),
)
