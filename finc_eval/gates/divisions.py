"""Divisions of all sets of a gate into the same kinds, nodes of a tree or values of a column; which are limited."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.forms import named
from finc_eval.core.progress import Stage
from finc_eval.core.run import Run
from finc_eval.core.words import in_percent, join_words, quote
from finc_eval.core.words import plural as how_many
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.extractors.imagenet import imagenet_tree
from finc_eval.gates.policy import COLUMN_SHARE, KindLimits
from finc_eval.gates.sets import GEN, REF, GateSets, independent
from finc_eval.gates.shares import members_to_hold, members_to_lose
from finc_eval.naming.classes import SEEN, class_weights, classifier_of, probabilities
from finc_eval.naming.evidence import Name, starts_with_trait, unnamed
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.answer import Answer, kind_id, node_tallies
from finc_eval.partitions.counts import COUNT, Counted, Counter, Counts, draw_members, tally_sets
from finc_eval.partitions.kind import Kind, kinds_of_rows, names_of_unions
from finc_eval.partitions.kind_tree import DIVIDE, KindTree, Tree
from finc_eval.partitions.tests import Tally
from finc_eval.partitions.values import count_values
from finc_eval.prompts.table import clear_prompts

OF_CLASSES = "seen-"  # beginning of the ids of classes and nouns that the extractor's last layer sees
OF_ALL = "all-"  # beginning of the ids of kinds of all sets together, which differ from the kinds of the reference

OF_REF, OF_SETS, MOVED, DIFFERENCES = (
    Stage.of_parts(name, (DIVIDE, COUNT))
    for name in ("kinds of the reference", "kinds of all sets", "moved", "what differs")
)
"""Names of their stages in the progress."""

NAMED_PROMPTS = 3  # prompts that a finding names at most

MOST = 0.15
"""Largest share of the smallest kind that is limited, unless the policy names the share. What fewer samples show is too
little to pass."""


@dataclass(frozen=True)
class Nouns:
    """Classes that the extractor's last layer sees, and the nouns above them, as kinds that may overlap."""

    members: NDArray[np.bool_]  # which patterns of nouns, in which samples are counted, have each noun


@dataclass(frozen=True)
class CountedSets:
    """Counts of all sets by the same kinds."""

    names: list[str]  # name of each kind
    tree: Tree | Nouns | None  # tree whose nodes the kinds are, or nouns; None for the values of a column
    counted: dict[str, Counted]  # counts of the leaves, or values, by label
    tallies: dict[str, Tally]  # counts of all kinds, by label
    cells: dict[str, NDArray[np.int32]]  # leaf of each sample by label, shape (n,)
    digest: str  # digest of the kinds
    ref: Embeddings  # the reference

    def called(self, kinds: Sequence[int]) -> dict[int, Name]:
        """Return the names of kinds of a tree: what their samples of the reference have in common, if anything."""
        if self.tree is None:
            return {}
        unions = {kind: self.leaves(kind) for kind in kinds}
        found = names_of_unions(unions, {REF: self.counted[REF]}, {REF: self.ref})
        if isinstance(self.tree, Nouns):
            # What is seen in samples is said of them where nothing but traits would be.
            nouns = {kind: Name(self._seen_as(kind)) for kind in kinds}
            found |= {kind: nouns[kind] for kind, name in found.items() if _has_no_noun(name)}
        return found

    def noun(self, kind: int, called: Mapping[int, Name]) -> str:
        """Return what a kind is called in all that is said; `called` has the names that are known."""
        name = called[kind].noun if kind in called else self.names[kind].partition("=")[2]
        if isinstance(self.tree, Nouns):
            name = name or self._seen_as(kind)
        return name or unnamed(self.names[kind].removeprefix(OF_ALL))

    def _seen_as(self, kind: int) -> str:
        """Return the noun that samples of a kind are seen as."""
        return self.names[kind].removeprefix(OF_CLASSES).replace("-", " ")

    def leaves(self, kind: int) -> list[int]:
        """Return the leaves of a kind; a value of a column is its own."""
        return [kind] if self.tree is None else np.flatnonzero(self.tree.members[kind]).tolist()

    def above(self, kind: int) -> list[int]:
        """Return the kinds that hold a kind."""
        if self.tree is None:
            return []
        if isinstance(self.tree, Nouns):
            members = self.tree.members[kind]
            around = np.flatnonzero((self.tree.members >= members).all(1) & (self.tree.members > members).any(1))
            return [int(noun) for noun in around]
        around = np.flatnonzero(self.tree.members[:, self.leaves(kind)[0]])
        return [node for node in around.tolist() if node > kind]

    def shares(self, label: str) -> NDArray[np.float64]:
        """Return the share of each kind in a set."""
        return np.asarray(self.tallies[label].members / self.tallies[label].n)


def _has_no_noun(name: Name) -> bool:
    """Return whether a name says traits alone, or nothing."""
    return name.text is None or starts_with_trait(name.text, name.evidence)


def tree_of_reference(sets: GateSets, seed: int, run: Run) -> KindTree:
    """Divide the reference into kinds: given these, all releases are alike, whatever their numbers of samples."""
    return KindTree.of_sets([sets.ref], seed, run.prefixed(OF_REF))


def by_tree(sets: GateSets, kinds: KindTree, run: Run, prefix: str = "") -> CountedSets:
    """Count all sets by the nodes of a tree; `prefix` marks the kinds of this tree."""
    counted: dict[str, Counted] = {}
    cells: dict[str, NDArray[np.int32]] = {}
    runs = run.over(COUNT, [samples.n for samples in sets.all.values()])
    for (label, samples), each in zip(sets.all.items(), runs, strict=True):
        counter = Counter(kinds, run=each)
        counted[label] = counter.of(samples)
        cells[label] = counter.kinds()
    names = [prefix + kind_id(node) for node in range(kinds.tree.nodes)]
    tallies = node_tallies(kinds.tree, {label: count.counts for label, count in counted.items()})
    return CountedSets(names, kinds.tree, counted, tallies, cells, kinds.digest[:12], sets.ref)


def by_tree_of_all(sets: GateSets, seed: int, run: Run) -> CountedSets:
    """Count all sets by kinds of all of them together, blind to the set of a sample: this finds new kinds.

    The reference gives at most as many samples as all generators together. Otherwise, kinds would be of the
    reference alone, and what it lacks be hidden in them.
    """
    generated = sum(independent(samples) for label, samples in sets.all.items() if label != REF)
    # The ids draw the samples of the reference.
    keys = sets.ref.unit_keys()
    last = np.unique(keys)[:generated][-1]
    every = sets.all | {REF: Subset(sets.ref, np.flatnonzero(keys <= last))}
    run = run.prefixed(OF_SETS)
    return by_tree(sets, KindTree.of_sets(list(every.values()), seed, run), run, OF_ALL)


def by_classes(sets: GateSets) -> CountedSets | None:
    """Count all sets by what the last layer of their extractor sees; None without one."""
    if classifier_of(sets.space) is None:
        return None
    seen: dict[str, NDArray[np.bool_]] = {}
    for label, samples in sets.all.items():
        # 4096: samples whose classes are weighed in memory together.
        parts = np.array_split(np.arange(samples.n), max(1, samples.n // 4096))
        chances = (probabilities(samples, rows) for rows in parts)
        seen[label] = np.concatenate([class_weights(chance) >= SEEN for chance in chances if chance is not None])
    patterns, places = np.unique(np.packbits(np.concatenate([*seen.values()]), axis=1), axis=0, return_inverse=True)
    tree = imagenet_tree()
    narrow = np.argsort(tree.parts, kind="stable")  # of nouns with the same samples, the narrowest is one
    every = np.unpackbits(patterns, axis=1, count=len(tree.names)).astype(bool).T[narrow]
    kept = np.sort(np.unique(every, axis=0, return_index=True)[1])
    kept = kept[every[kept].any(1)]
    members, nouns = every[kept], [tree.names[noun].replace(" ", "-") for noun in narrow[kept]]
    ends = np.cumsum([samples.n for samples in sets.all.values()])[:-1]
    cells = dict(zip(sets.all, np.split(places.reshape(-1).astype(np.int32), ends), strict=True))
    counted = {}
    for label, samples in sets.all.items():
        drawn = draw_members(cells[label], len(patterns))
        counted[label] = Counted(Counts.of(len(patterns), cells[label], samples.group_hashes()), drawn, drawn)
    tallies = tally_sets({label: count.counts.of_unions(members) for label, count in counted.items()})
    names = [OF_CLASSES + noun for noun in nouns]
    return CountedSets(names, Nouns(members), counted, tallies, cells, sets.space, sets.ref)


def by_column(sets: GateSets, column: str) -> CountedSets:
    """Count by the values of a column; samples without a value are of no kind, and count in the size of the set."""
    found = count_values(sets.all, column)
    names = [f"{column}={value}" if value else "" for value in found.values]
    tallies = tally_sets({label: count.counts for label, count in found.counted.items()})
    return CountedSets(names, None, found.counted, tallies, found.cells, column, sets.ref)


@dataclass(frozen=True)
class ReleaseKinds:
    """The kinds of a release and an older one, tested, and which of them rows are of."""

    kinds: tuple[Kind, ...]
    headings: tuple[Kind, ...]
    kinds_of: Callable[[torch.Tensor], list[str]]

    @classmethod
    def of(cls, sets: GateSets, answer: Answer, old: str, run: Run) -> ReleaseKinds:
        """Describe the kinds of an answer on a release and an older one, labelled "ref"."""
        kinds, headings, divided = answer.described({GEN: sets.gen, "ref": sets.all[old]})
        return cls(kinds, headings, kinds_of_rows(kinds, divided, run))


def fewest(sets: GateSets) -> int:
    """Return the number of independent samples of the smallest set of a generator."""
    return min(independent(samples) for samples in (sets.gen, *sets.baselines.values()))


@dataclass(frozen=True)
class JudgedKinds:
    """Kinds that limits on losses are on."""

    limited: tuple[int, ...]  # kinds that must be shown to keep their shares
    shares: NDArray[np.float64]  # share of the reference of each kind
    smallest: float  # smallest share of a limited kind
    least: float  # share of the baseline that losses of rarer kinds are parts of
    # factor on the number of samples from which on kinds of `MOST` could be limited; None if they are
    enough: float | None = None

    def unseen(self, rule: str, counted: CountedSets) -> Iterator[str]:
        """Yield a sentence on what can be lost while all limits hold."""
        least = in_percent(self.smallest, 2)
        if counted.tree is not None:
            if self.limited:
                yield (
                    f"{rule} limits kinds of at least {least} of the reference: smaller kinds can be lost unseen; more "
                    "samples or a labelled column show more"
                )
            return
        every = zip(counted.names, self.shares, strict=True)
        rare = [name for name, share in every if name and 0 < share < self.smallest]
        if rare:
            yield (
                f"{rule} does not limit {how_many(len(rare), 'kind')} of less than {least} of the reference, such as "
                f"{rare[0]}, which can be lost unseen: set a smaller min_share"
            )


def judge_kinds(counted: CountedSets, limits: KindLimits, lose: float, size: int) -> JudgedKinds:
    """Return the kinds with limits on losses, which follow from the reference and the numbers of samples alone."""
    shares, least = counted.shares(REF), limits.least
    if counted.tree is None or limits.only:
        smallest = least or 1 / size
        kept = tuple(kind for kind in find_named(counted, limits) if shares[kind] >= smallest)
        return JudgedKinds(kept, shares, smallest, smallest)
    assert isinstance(counted.tree, Tree)  # what the last layer sees is searched alone
    if least is not None:
        limited = _cut_at(counted.tree, shares, least)
    else:
        # With more kinds, one of them has lost more by chance, and so each must be larger.
        limited, kinds = (), 1
        while True:
            least = members_to_hold(lose, kinds) / size
            limited = _cut_at(counted.tree, shares, least)
            if len(limited) <= kinds:
                break
            kinds = len(limited)
    enough = least / MOST if limits.least is None and least > MOST else None
    return JudgedKinds(limited, shares, min(least, 1.0), min(least, 1.0), enough)


def sought_kinds(counted: CountedSets, limits: KindLimits, size: int, others: Collection[int] = ()) -> JudgedKinds:
    """Return the kinds whose loss is a regression if it is seen, though they need not be shown to keep their shares."""
    shares = counted.shares(REF)
    family = (shares >= COLUMN_SHARE).sum() if isinstance(counted.tree, Nouns) else len(counted.names)
    seen = max(members_to_lose(0.0, level_of_each(ALPHA, int(family))) / size, limits.least or 0.0)
    is_large = shares >= seen
    is_large[-1] &= isinstance(counted.tree, Nouns)  # the root of a tree is not a kind
    kinds = [kind for kind in np.flatnonzero(is_large).tolist() if kind not in others]
    return JudgedKinds(tuple(kinds), shares, seen, seen)


def find_named(counted: CountedSets, limits: KindLimits) -> list[int]:
    """Return the kinds that a policy names; all that have a name, if it names none."""
    if not limits.only:
        return [kind for kind, name in enumerate(counted.names) if name]
    return sorted({kind for kinds in kinds_by_name(counted, limits).values() for kind in kinds})


def kinds_by_name(counted: CountedSets, limits: KindLimits) -> dict[str, list[int]]:
    """Return the kinds that each name in a policy means: values of its column, or else ids or names of kinds.

    All kinds are named once, whatever the number of names.
    """
    words = {value: f"{limits.column}={value}" if limits.column else value for value in limits.only}
    if limits.column:
        words = dict(zip(words, named(words.values(), counted.names), strict=True))
    known: dict[str, list[int]] = {}
    for kind, name in enumerate(counted.names):
        known.setdefault(name, []).append(kind)
    if counted.tree is not None and not words.keys() <= known.keys():
        for kind, called in counted.called(range(len(counted.names))).items():
            text = called.text or ""
            for alias in {text, text.partition(" (")[0]} - {counted.names[kind]}:
                known.setdefault(alias, []).append(kind)
    return {value: known.get(word, []) if word else [] for value, word in words.items()}


def _cut_at(tree: Tree, shares: NDArray[np.float64], least: float) -> tuple[int, ...]:
    """Return the smallest nodes of at least this share that together cover every leaf; the root is left out.

    `shares` has the share of each node, leaves first and the root last, shape (nodes,).
    """
    large = shares >= least
    divided = np.r_[np.zeros(tree.leaves, bool), large[tree.joins].all(1)]
    return tuple(np.flatnonzero((large & ~divided)[:-1]).tolist())


def name_prompts(sets: GateSets, answer: Answer, seed: int, run: Run) -> str:
    """Name the prompts whose images surely changed since the baseline; "" for sets that no prompt pairs, or none."""
    pairing = None if sets.blocks[0] is None or sets.pairs else sets.pairing(None)  # a pair alone shows nothing
    if pairing is None or len(pairing.sets) != 2:
        return ""
    found = clear_prompts(pairing, answer.kinds, seed, run)
    more = len(found) - NAMED_PROMPTS
    named = [quote(prompt) for prompt in found[:NAMED_PROMPTS]] + [f"{more:,} more"] * (more > 0)
    return f"samples of the {pairing.info.column}{'s' * (len(found) > 1)} {join_words(named)}" if found else ""
