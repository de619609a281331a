"""Designs of kinds: shares, differences, parts of prompts and p-values of all kinds of sets, from counts."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from _law import Design, Drawn, Holds, PValue

from finc_eval.numerics.blocks import Blocked, WithinBlocks
from finc_eval.partitions.counts import Counts, Examples, tally_sets
from finc_eval.partitions.kind import describe_kinds
from finc_eval.partitions.tests import Mixes, test_kinds, test_within_blocks

PROMISES = {
    "Kind.interval": Holds(
        together=True, width=(0.9, 1.5), why="it counts all shares, and of few prompts what one prompt may change"
    ),
    "KindShare.interval": Holds(together=True, width=(0.95, 1.2)),
    "Kind.p_value": PValue(together=True),
    "Mix.interval": Holds(
        together=True, width=(0.9, 1.5), why="a prompt with one image counts with the variance of the whole set"
    ),
}

NUMBERS = ("Kind.interval", "KindShare.interval", "Kind.p_value")


def law_of(kinds, rare, more=0.0):
    """Return the shares of kinds: the last has a share of `rare` and `more`, the others are equal."""
    return np.append(np.full(kinds - 1, (1 - rare - more) / (kinds - 1)), rare + more)


def counts_of(rng, n, law, size=1, alike=1.0):
    """Count a set in groups of `size` samples; a sample has the kind of its group with probability `alike`."""
    own, groups = rng.choice(len(law), n, p=law), np.arange(n, dtype=np.uint64) // size
    shared = rng.choice(len(law), n, p=law)[groups.astype(int)]
    cells = np.where(rng.random(n) < alike, shared, own) if size > 1 else own
    return Counts.of(len(law), cells.astype(np.int32), groups if size > 1 else None)


def drawn_kinds(tests, shares, differences, is_null, parts=None):
    """Yield what is printed of all kinds; `shares` has the true shares of each set, the first is the set compared."""
    kinds = describe_kinds(tests, range(len(differences)), {}, lambda label, number: Examples(), str)
    for number, kind in enumerate(kinds):
        yield Drawn("Kind.interval", *kind.seen_from("gen"), differences[number])
        for label, law in shares.items():
            yield Drawn("KindShare.interval", kind.shares[label].share, kind.shares[label].interval, law[number])
        if parts is not None:
            sign = 1 if kind.side in ("most in gen", "least in gen") else -1
            ends = sorted(sign * end for end in kind.mix.interval)
            yield Drawn("Mix.interval", sign * kind.mix.value, tuple(ends), parts[number])
    yield Drawn("Kind.p_value", min(kind.p_value for kind in kinds), is_null=is_null)


def some_sets(rng, sizes, kinds, rare, more=0.0, size=1, alike=1.0):
    """Sets of independent samples, or of groups; the first may have more of a kind than all others."""
    laws = [law_of(kinds, rare, more if number == 0 else 0.0) for number in range(len(sizes))]
    labels = ("gen", "ref", "other")[: len(sizes)]
    counts = [counts_of(rng, n, law, size, alike) for n, law in zip(sizes, laws, strict=True)]
    tests = test_kinds(tally_sets(dict(zip(labels, counts, strict=True))))
    yield from drawn_kinds(tests, dict(zip(labels, laws, strict=True)), laws[0] - laws[1], not more)


@dataclass(frozen=True)
class Paired:
    """Images of the same prompts in two sets, with their true shares, differences and parts of mixes."""

    counts: np.ndarray  # of each set, prompt and kind
    each: np.ndarray  # images of each set and prompt
    within: WithinBlocks
    tallies: dict
    shares: dict
    difference: np.ndarray
    parts: np.ndarray
    is_whole: bool

    @property
    def weights(self):
        """Numbers of images of each set, and the weights of the prompts."""
        return np.array([*self.each, weights_of(self.each)])


def weights_of(each):
    weights = 1 / (1 / each).sum(0)
    return weights / weights.sum()


def paired_images(rng, prompts, sizes, kinds, rare, moved, follow=0.7, is_whole=False):
    """Draw images: most follow their prompt; of prompts of kind 0, a part of gen is of the last kind.

    `sizes` has the number of images of a prompt in each set, or is a range of numbers if the mixes are unlike. If a
    prompt may have a single image, or images that are not independent, the true difference is of all prompts, and else
    of those drawn.
    """
    law, last = law_of(kinds, rare), np.eye(kinds)[-1]
    center = rng.choice(kinds, prompts, p=law)
    ref = follow * np.eye(kinds)[center] + (1 - follow) * law
    gen = ref + (moved * (center == 0))[:, None] * (last - ref)
    fixed = np.broadcast_to(np.array(sizes[:2])[:, None], (2, prompts))
    each = rng.choice(sizes, (2, prompts)) if isinstance(sizes, range) else fixed
    counts = np.array([draw_images(rng, own, laws, is_whole) for own, laws in zip(each, (gen, ref), strict=True)])
    cells = np.concatenate([np.tile(np.arange(kinds), prompts).repeat(own.ravel().astype(int)) for own in counts])
    block = np.concatenate([np.arange(prompts).repeat(own) for own in each])
    blocked = Blocked(block, np.arange(2).repeat(each.sum(1)), is_whole)
    parts = {"gen": blocked.owner == 0, "ref": blocked.owner == 1}
    own = {
        label: Counts.of(kinds, cells[part].astype(np.int32), block[part].astype(np.uint64))
        for label, part in parts.items()
    }
    of_all = law[0] * moved * (last - follow * np.eye(kinds)[0] - (1 - follow) * law)
    weights = weights_of(each)
    one, other = (sizes / sizes.sum() - weights for sizes in each)
    return Paired(
        counts=counts,
        each=each,
        within=WithinBlocks.of(blocked, cells, np.eye(kinds, dtype=bool), int(rng.integers(1000))),
        tallies=tally_sets(own),
        shares={"gen": law + of_all, "ref": law},
        difference=of_all if is_whole or each.min() == 1 else weights @ (gen - ref),
        parts=one @ gen - other @ ref,
        is_whole=is_whole,
    )


def draw_images(rng, sizes, laws, is_whole):
    """Return numbers of images by prompt and kind; the images of a prompt are all of one kind if they are a whole."""
    if is_whole:
        return np.array([rng.multinomial(1, law) * size for size, law in zip(sizes, laws, strict=True)])
    return rng.multinomial(sizes, laws)


def images_of_prompts(rng, moved, **options):
    """Images of the same prompts; see `paired_images`."""
    drawn = paired_images(rng, moved=moved, **options)
    mixes = Mixes.of(drawn.counts, drawn.weights, is_whole=drawn.is_whole)
    tests = replace(test_within_blocks(test_kinds(drawn.tallies), drawn.within), mixes=mixes)
    parts = None if mixes is None else drawn.parts
    yield from drawn_kinds(tests, drawn.shares, drawn.difference, not moved, parts)


def _design(name, regime, draw, numbers=NUMBERS, runs=600, quick=40, **options):
    return Design(name, regime, numbers, partial(draw, **options), runs, quick)


_pairs = partial(_design, draw=images_of_prompts, runs=200, quick=8, kinds=4)
MIXED = (*NUMBERS, "Mix.interval")
MOVED = {"rare": 0.05, "moved": 0.7}

DESIGNS = (
    _design("kinds of 400 and 600", "large", some_sets, sizes=(400, 600), kinds=6, rare=0.1),
    _design("kinds of 40 and 60", "small", some_sets, sizes=(40, 60), kinds=4, rare=0.1),
    _design("kinds of 400 and 4000, one rare", "rare", some_sets, sizes=(400, 4000), kinds=4, rare=0.01),
    _design("a rare kind more", "rare", some_sets, sizes=(400, 4000), kinds=4, rare=0.01, more=0.04),
    _design("kinds in groups of four", "clustered", some_sets, sizes=(800, 800), kinds=4, rare=0.1, size=4),
    _design(
        "kinds of three sets in groups",
        "clustered",
        some_sets,
        sizes=(800, 800, 600),
        kinds=4,
        rare=0.1,
        size=4,
        alike=0.6,
    ),
    _design("a kind more", "large", some_sets, sizes=(400, 600), kinds=6, rare=0.1, more=0.12),
    _design("a kind more in groups", "clustered", some_sets, sizes=(800, 800), kinds=4, rare=0.1, more=0.2, size=4),
    _pairs("kinds of pairs", "paired", prompts=80, sizes=(1, 1), rare=0.1, moved=0.0),
    _pairs("kinds of pairs, moved", "paired", prompts=80, sizes=(1, 1), **MOVED),
    _pairs("kinds of two and three images", "paired", prompts=40, sizes=(2, 3), rare=0.1, moved=0.0),
    _pairs("kinds of two and three images, moved", "paired", prompts=40, sizes=(2, 3), **MOVED),
    _pairs("kinds of windows", "clustered", prompts=60, sizes=(3, 3), rare=0.1, moved=0.0, is_whole=True),
    _pairs("kinds of unlike mixes", "paired", numbers=MIXED, prompts=40, sizes=range(2, 5), rare=0.1, moved=0.0),
    _pairs("kinds of unlike mixes, moved", "paired", numbers=MIXED, prompts=40, sizes=range(2, 5), **MOVED),
    _pairs("kinds of unlike mixes from one image on", "rare", numbers=MIXED, prompts=40, sizes=range(1, 4), **MOVED),
)
