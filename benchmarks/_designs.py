"""Laws to draw sets from, changes to plant in them, and what counts as found: for the benchmarks of inference.

A *law* opens a source with a random generator. A source has kinds, the share of each, and `draw`, which returns new
rows of any kinds. Sources of real samples never return a sample twice, so parts drawn from them are disjoint.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import _real
import numpy as np

BEST = 50
"""Best samples of a direction, of the set that has more, that decide which kind it is; of a kind there are 16."""


@dataclass(frozen=True)
class Source:
    """Samples of k kinds: `shares` (k,); `draw` makes rows (n, d) of kinds (n,); `fresh` makes many, with kinds."""

    shares: np.ndarray
    draw: Callable[[np.ndarray], np.ndarray]
    fresh: Callable[[], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Part:
    """A set, and the kind of each of its samples."""

    rows: np.ndarray
    kinds: np.ndarray


@dataclass(frozen=True)
class Planted:
    """Two sets, the share of every kind in each, and the role of the kinds that were planted."""

    gen: Part
    ref: Part
    shares: tuple[np.ndarray, np.ndarray]
    roles: dict[int, str]


def clusters(kinds, dim, centers=0.5, spread=1.0, zipf=False):
    """Return a law of Gaussian clusters; `centers` and `spread` are standard deviations per axis."""

    def opened(rng):
        middle = rng.standard_normal((kinds, dim)) * centers
        weights = 1 / np.arange(1, kinds + 1) if zipf else np.ones(kinds)

        def draw(which):
            return (middle[which] + spread * rng.standard_normal((len(which), dim))).astype(np.float32)

        return Source(weights / weights.sum(), draw, _many(draw, kinds))

    return opened


def heavy_tails(dim, freedom):
    """Return a law of independent t variables."""

    def opened(rng):
        def draw(which):
            return rng.standard_t(freedom, (len(which), dim)).astype(np.float32)

        return Source(np.ones(1), draw, _many(draw, 1))

    return opened


def points(count, dim):
    """Return a law of a few distinct points."""

    def opened(rng):
        where = rng.standard_normal((count, dim)).astype(np.float32)
        return Source(np.full(count, 1 / count), where.__getitem__, _many(where.__getitem__, count))

    return opened


def _many(draw, kinds, each=1000):
    def fresh():
        which = np.repeat(np.arange(kinds), each)
        return draw(which), which

    return fresh


def real(load):
    """Return a law of the samples of a labeled set, of each at most once, with its classes in random order."""

    def opened(rng):
        rows, labels = load()
        left = [rng.permutation(np.flatnonzero(labels == name)).tolist() for name in rng.permutation(np.unique(labels))]

        def draw(which):
            return rows[[left[kind].pop() for kind in which]]

        def fresh():
            kinds = np.repeat(np.arange(len(left)), [len(one) for one in left])
            return rows[[index for one in left for index in one]], kinds

        return Source(np.array([len(one) for one in left]) / len(rows), draw, fresh)

    return opened


def digits():
    """Return pixels and labels of 20 000 real digits."""
    return _loaded(_real.mnist)


def photographs():
    """Return embeddings and classes of 7 200 photographs."""
    return _loaded(_real.tiny_imagenet)


@cache
def _loaded(load):
    if (found := load()) is None:
        raise SystemExit("the regimes of real samples need the test assets: set FINC_EVAL_ASSETS, or choose --regime")
    return found


def same_law(source, rng, *sizes):
    """Return independent sets of one law; their kinds are drawn, too."""
    return [drawn(source, rng, source.shares, n) for n in sizes]


def drawn(source, rng, shares, n):
    """Return n samples whose kinds are drawn with these shares."""
    kinds = rng.choice(len(shares), n, p=shares)
    return Part(source.draw(kinds), kinds)


def nothing(source, rng, sizes):
    """Plant nothing: two sets of one law."""
    return Planted(*same_law(source, rng, *sizes), (source.shares, source.shares), {})


def planted(source, gen, ref, sizes, roles):
    """Return two sets that have exactly these shares of the kinds, up to rounding."""
    parts = []
    for shares, n in zip((gen, ref), sizes, strict=True):
        kinds = np.repeat(np.arange(len(shares)), np.rint(n * shares).astype(int))
        parts.append(Part(source.draw(kinds), kinds))
    return Planted(*parts, (gen, ref), roles)


def six(source, sizes, share, base, factor):
    """Plant six changes: 2 novel kinds of a share, 2 gone, one of `factor` times its share `base`, and one the reverse.

    All other kinds have equal shares, the same in both sets.
    """
    others = len(source.shares) - 6
    rest = np.full(others, (1 - 2 * share - (1 + factor) * base) / others)
    gen = np.array([share, share, 0, 0, factor * base, base, *rest])
    ref = np.array([0, 0, share, share, base, factor * base, *rest])
    roles = dict(enumerate(("over", "over", "under", "under", "over", "under")))
    return planted(source, gen, ref, sizes, roles)


def one_novel(source, n, share):
    """Plant one kind of this share that the reference lacks, among kinds of equal shares."""
    others = len(source.shares) - 1
    gen, ref = np.array([share, *[(1 - share) / others] * others]), np.array([0, *[1 / others] * others])
    return planted(source, gen, ref, (n, n), {0: "over"})


def copies(part, count, noise, rng):
    """Return every sample `count` times, each time with noise of its own, and the group of each row."""
    groups = np.repeat(np.arange(len(part.rows)), count)
    rows = part.rows[groups]
    return (rows + noise * rng.standard_normal(rows.shape)).astype(np.float32), groups


def kind_of(members, kinds, majority=0.5):
    """Return the kind that more than this part of the best members belongs to, or None, and its part of them.

    A kind that has fewer samples than are looked at is asked for among as many as it has.
    """
    parts = {
        int(kind): float(np.mean(kinds[members[: min(BEST, int((kinds == kind).sum()))]] == kind))
        for kind in np.unique(kinds[members[:BEST]])
    }
    if not parts or max(parts.values()) <= majority:
        return None, 0.0
    kind = max(parts, key=parts.get)
    return kind, parts[kind]


def shown(one):
    """Return the role of a kind or a direction, and its typical samples in the set that has more, best first."""
    role = getattr(one, "role", None) or ("over" if one.share_difference > 0 else "under")
    if hasattr(one, "role"):
        return role, one.top_gen if role == "over" else one.top_ref
    return role, np.array(one.shares["gen" if role == "over" else "ref"].top, np.int64)


def judge(sets, modes):
    """Return what significant kinds or directions, given by role and typical samples, say of planted sets.

    Returns:
        The planted kinds that were found, each with the place of the first that shows it; the number of those that show
        no planted kind in its role; and the purity of the others.
    """
    found, others, purities = {}, 0, []
    for place, (role, members) in enumerate(modes):
        kind, purity = kind_of(members, (sets.gen if role == "over" else sets.ref).kinds)
        if sets.roles.get(kind) == role:
            found.setdefault(kind, place)
            purities.append(purity)
        else:
            others += 1
    return found, others, purities
