"""Exact repeats in sets, and groups: samples that are not independent.

Equal samples are counted by a 64-bit hash. The other sets distinguish copies from independent draws of a law with few
values: draws of one law meet as often across sets as within one, and copies of a set meet within it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from itertools import combinations
from math import floor
from operator import add

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import send
from finc_eval.core.errors import DataError
from finc_eval.core.progress import Stage
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.keys import hash_rows, mix_bits
from finc_eval.numerics.design_effects import MIN_INDEPENDENT, GroupSizes
from finc_eval.numerics.hash_counts import HashCounts

REPEATS = "exact repeats"  # name of the grouping of equal rows
FEW_REPEATS = 0.01  # share of a set's samples that may repeat others before anything is done about it
NAMED_PAIRS = 5  # pairs of sets, after the first, that a sentence on samples that sets share names at most
IN_BOTH = "are also in"  # words of the sentence on samples that two sets share
REPEATS_ITSELF = "repeats itself"  # words of the sentence on a generator that makes the same samples again and again
REFERENCE = "ref"  # label of the reference, whose repeats are never draws

LOOK = Stage("look for repeats", cost=0.2)


def row_hashes(embeddings: Embeddings, run: Run | None = None) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row, shape (n,): equal rows have equal hashes, unequal rows almost surely not.

    The set keeps them: repeats and copies are looked for by the same hashes.
    """
    run = Run.of(run)
    if embeddings.hashes_of_rows is not None:
        run.progress(LOOK, embeddings.n, embeddings.n)
        return embeddings.hashes_of_rows
    hashes = []
    for batch in embeddings.batches(run.portion, partial(send, device=run.torch_device)):
        hashes.append(hash_rows(batch.rows))
        run.progress(LOOK, batch.start + len(batch.rows), embeddings.n)
    embeddings.hashes_of_rows = mix_bits(torch.cat(hashes).cpu().numpy().view(np.uint64))
    return embeddings.hashes_of_rows


def sample_hashes(sets: Mapping[str, Embeddings], run: Run | None = None) -> dict[str, NDArray[np.uint64]]:
    """Return a 64-bit hash of each sample by set, shape (n,): equal for equal embeddings and for equal images.

    The last bits of a network depend on the size of its batch, so that an image has the row of the first with its
    pixels, in any set. Pixels of clips do not tell when frames are shown: clips have the rows that they have.
    """
    runs = Run.of(run).over(LOOK, [embeddings.n for embeddings in sets.values()])
    hashes = {label: row_hashes(embeddings, each) for (label, embeddings), each in zip(sets.items(), runs, strict=True)}
    pixels = {
        label: content
        for label, embeddings in sets.items()
        if embeddings.are_images and (content := embeddings.content()) is not None
    }
    if pixels:
        _, first, same = np.unique(np.concatenate([*pixels.values()]), return_index=True, return_inverse=True)
        rows = np.concatenate([hashes[label] for label in pixels])[first][same]
        ends = np.cumsum([len(content) for content in pixels.values()])[:-1]
        hashes |= dict(zip(pixels, np.split(rows, ends), strict=True))
    return hashes


def share_of_repeats(embeddings: Embeddings, run: Run | None = None) -> float:
    """Return the share of samples that equal an earlier sample; see `sample_hashes`."""
    return 1 - _distinct(sample_hashes({"": embeddings}, run)[""]) / embeddings.n


def counts_by_hash(sets: Mapping[str, Embeddings], hashes: Mapping[str, NDArray[np.uint64]]) -> dict[str, HashCounts]:
    """Return how many samples of each set have each value, by label, from the hash of each sample, shape (n,).

    A sample that a sketch kept stands for its set, all of whose samples are counted by their embeddings.
    """
    return {
        label: embeddings.stands_for or HashCounts.of(hashes[label], most=None) for label, embeddings in sets.items()
    }


def repeats_as_groups(
    sets: Mapping[str, Embeddings], run: Run | None = None
) -> tuple[dict[str, Embeddings], list[str]]:
    """Make groups of the exact repeats in each set that has no groups and more than 1 % repeats, unless they are draws.

    Draws of a generator are independent, also where they repeat: equal samples of a set other than the reference stay
    single, unless nearly all occur equally often, as in a folder whose files were duplicated. Repeats of the reference
    are groups, unless the other sets have them about as often, as draws of a law with few values. The sentences are on
    sets with many repeats and on samples that sets share.
    """
    free = {label for label, embeddings in sets.items() if embeddings.group_hashes() is None}
    hashes = sample_hashes(sets, run) if free else {}
    counts = counts_by_hash(sets, hashes) if free else {}
    grouped, sentences = dict(sets), []
    for label in (label for label in sets if label in free):
        of_set = counts[label]
        n, distinct = of_set.n, of_set.distinct
        if n - distinct <= FEW_REPEATS * n:
            continue
        others = [others for name, others in counts.items() if name != label]
        about = "" if of_set.is_whole else "about "
        only = f"{label} has only {about}{plural(distinct, 'distinct sample')} among {n:,}"
        if others and are_drawn_alike(of_set, reduce(add, others)):
            sentences.append(f"{only}, and the other set has the same repeats as often: they count as independent")
            continue
        times, values = np.unique(of_set.counts, return_counts=True)
        samples = times * values  # samples by how often they occur
        # 0.9: part of the samples that occur equally often, twice or more, from which on files were duplicated.
        duplicated = times[samples.argmax()] > 1 and samples.max() >= 0.9 * samples.sum()
        if distinct == 1 or (label != REFERENCE and not duplicated):
            some = plural(distinct, "distinct sample")
            sentences.append(f"{label} {REPEATS_ITSELF}: {about}{some} among {n:,}, which count as they come")
        else:
            grouped[label] = sets[label].with_groups(hashes[label], REPEATS)
            sentences.append(
                f"{only}: the tests count each once (if all are draws of their own, name a column of different values "
                "as groups)"
            )
    pairs = {
        (label, other): shared
        for (label, other), shared in _count_shared(counts).items()
        if (of_set := counts[label]).n - of_set.distinct <= FEW_REPEATS * of_set.n
    }
    return grouped, sentences + _say_shared(pairs, counts)


def _count_shared(counts: Mapping[str, HashCounts]) -> dict[tuple[str, str], int]:
    """Return how many samples of the first of each pair of sets the second has, of the pairs that share some."""
    shared_by_pair = {}
    for (label, ours), (other_label, theirs) in combinations(counts.items(), 2):
        _, own, others = ours.beside(theirs)
        shared = round(ours.n * own[others > 0].sum() / max(1, own.sum()))
        if shared > FEW_REPEATS * ours.n:
            shared_by_pair[label, other_label] = shared
    return shared_by_pair


def _say_pair(pair: tuple[str, str], shared: int, of_set: HashCounts) -> str:
    """Return that two sets share samples, in a sentence."""
    about = "" if of_set.is_whole else "about "
    some = f"all {of_set.n:,}" if shared == of_set.n else f"{about}{shared:,} of the {of_set.n:,}"
    return f"{some} samples of {pair[0]} {IN_BOTH} {pair[1]}, with equal embeddings"


def _say_shared(pairs: Mapping[tuple[str, str], int], counts: Mapping[str, HashCounts]) -> list[str]:
    """Return which sets share samples, in one sentence for all pairs of them; none if no sets do."""
    if not pairs:
        return []
    ((first, shared), *others) = sorted(pairs.items(), key=lambda pair: -pair[1])
    said = _say_pair(first, shared, counts[first[0]])
    if others:
        named = [f"{name} and {other} ({count:,})" for (name, other), count in [(first, shared), *others[:NAMED_PAIRS]]]
        more = [plural(len(others) - NAMED_PAIRS, "more pair")] if len(others) > NAMED_PAIRS else []
        return [f"sets share samples with equal embeddings, and are not independent: {', '.join([*named, *more])}"]
    return [f"{said}: the sets are not independent, and what they share cannot differ"]


def describe_equal(sets: Mapping[str, Embeddings], run: Run | None = None) -> dict[tuple[str, ...], str]:
    """Return a sentence on each set with equal samples and each pair of sets that share some, by the labels."""
    counts = counts_by_hash(sets, sample_hashes(sets, run))
    sentences: dict[tuple[str, ...], str] = {}
    for label, of_set in counts.items():
        times, distinct = of_set.counts, of_set.distinct
        if distinct == 1:
            sentences[(label,)] = same_embedding(sets[label].name)
        elif of_set.n - distinct > FEW_REPEATS * of_set.n:
            sentences[(label,)] = (
                f"{label} has only {plural(distinct, 'distinct sample')} among {of_set.n:,}, one of them "
                f"{times.max():,} times: its distance to its k-th neighbor is 0 for k below {times.max():,}"
            )
    for pair, shared in _count_shared(counts).items():
        sentences[pair] = _say_pair(pair, shared, counts[pair[0]])
    return sentences


def same_embedding(name: str) -> str:
    """Return the sentence on a set without any variance."""
    return f"all samples of {name} have the same embedding: look at them before trusting a number"


def _distinct(hashes: NDArray[np.uint64]) -> int:
    """Count distinct hashes; numpy's `unique` takes ten times as long."""
    return 1 + int(np.count_nonzero(np.diff(np.sort(hashes))))


def are_drawn_alike(ours: HashCounts, theirs: HashCounts) -> bool:
    """Return whether samples meet equal samples in another set about as often as in their own.

    Both the pairs of equal samples are compared, which copies of a few common samples dominate, and the samples that
    meet an equal one among equally many of either set.
    """
    _, own, others = ours.beside(theirs)
    counts, across = own[own > 0], others[own > 0].astype(float)
    inside = counts - 1.0
    n, m = ours.n - 1, theirs.n
    if not inside.any():
        return True
    pairs = (across @ counts / m) / (inside @ counts / n)
    drawn = min(n, m)
    # A sample with c equal samples among n meets at least one among `drawn` of them, drawn at random.
    meets = [(1 - (1 - drawn / total) ** count) @ counts for total, count in ((m, across), (n, inside))]
    # 0.5: meetings across sets, in parts of those within, from which samples count as draws of a discrete law.
    return bool(min(pairs, meets[0] / meets[1]) >= 0.5)


def warn_of_ungrouped(label: str, embeddings: Embeddings, column: str) -> list[str]:
    """Warn of samples without a value in the column that names the groups."""
    if column not in embeddings.columns:
        grouping = embeddings.grouping
        taken = (
            f"its samples are grouped by {grouping}"
            if grouping
            else "each of its samples is taken for a group of its own"
        )
        return [f"{label} has no column {column!r}: {taken}"]
    count = embeddings.column(column).count("")
    if not count:
        return []
    some = f"all {count:,}" if count == embeddings.n else f"{count:,} of the {embeddings.n:,}"
    return [
        f"{some} samples of {label} have no value in the column {column!r}: each of them is taken for a group of its "
        "own"
    ]


def few_groups(label: str, n: int, per_group: float, name: str | None) -> list[str]:
    """Warn of n samples in groups of mean size `per_group`, by `name`, that are equivalent to few independent ones.

    Fewer than 4 are a DataError, except for exact repeats, which nobody named: these are not tested then.
    """
    independent = n / per_group
    # 40: independent samples that the groups of a set should at least be equivalent to.
    if per_group <= 1 or independent >= 40:
        return []
    if independent < MIN_INDEPENDENT:
        if name != REPEATS:
            raise too_few_groups(label, n, per_group, name)
        return [
            f"the {n:,} samples of {label} repeat so few that they are equivalent to "
            f"{plural(round(independent), 'independent sample')}: nothing is tested, and no kind can be significant"
        ]
    return [
        f"the groups of {label} are so few or so large that its {n:,} samples are equivalent to {independent:.0f} "
        "independent samples: expect wide intervals, and keep fewer samples of large groups"
    ]


def too_few_groups(label: str, n: int, per_group: float, name: str | None) -> DataError:
    """Return the error for a set whose samples lie in too few groups to be compared."""
    independent = floor(10 * n / per_group) / 10
    equivalent = f"{independent:g} independent sample{'s' * (independent != 1)}"
    if name == REPEATS:
        return DataError(
            f"the {n:,} samples of {label} repeat so few that one half of these has hardly any: they are equivalent to "
            f"{equivalent}, too few to compare; take samples that are not repeats"
        )
    by = f" by {name}" if name else ""
    return DataError(
        f"the {n:,} samples of {label} lie in too few groups{by}, or nearly all in one: they are equivalent to "
        f"{equivalent}; take dozens of groups of each set, and fewer samples of the largest groups"
    )


def mean_group_size(embeddings: Embeddings) -> float:
    """Return the mean size of the group of a sample: 1 if ungrouped."""
    hashes = embeddings.group_hashes()
    if hashes is None:
        return 1.0
    return GroupSizes.of(np.unique(hashes, return_counts=True)[1].astype(float)).mean
