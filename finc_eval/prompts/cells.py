"""Cells of a table, words of prompts × what pictures have: labels, columns of metadata, looks, classes and kinds.

The images of a prompt are put in pairs, one of each set. d_ic is +1 if the first image of pair i alone has attribute c,
−1 if the second alone has it, and h_iw says whether its prompt has the word w. A cell differs if the signs agree:

    z_wc = Σ_i h_iw·d_ic / √(Σ_i h_iw·d_ic²)

under random signs of the pairs, which exchange their images. All cells are one family: |z| is compared with the largest
of all cells under the same signs (Westfall and Young 1993). One cause is one cell: the cell with the largest |z| is
chosen that no clearer word explains (`words`), its unlike pairs are left out, and the rest is tested again. What is left out depends on |d| alone, which signs do not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.core.serialize import Shown
from finc_eval.core.words import percent, quote
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.naming.classes import class_properties
from finc_eval.naming.evidence import CLASSIFIER, is_unnamed, unnamed
from finc_eval.naming.explained import TAIL
from finc_eval.naming.measured import MeasuredSets, columns_of
from finc_eval.naming.names import name_by_members
from finc_eval.naming.properties import TEXT_COLUMNS, SampledSets, metadata_properties, panel_of
from finc_eval.numerics.families import bonferroni, share_as_large
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.prompts.words import FEWEST_PROMPTS, SIGNS, Phrases, clearest

Array = NDArray[np.float64]

MIN_UNLIKE = 8
"""Pairs of which one image alone has the attribute that a cell needs. Of 7, all have one sign in 1 of 64 draws, so that
no cell of a table of more than one can be significant."""

SHOWN = 4  # images of a cell and set that are shown

KINDS = (0.03, 0.3)  # shares of all samples between which a kind is an attribute

OF_KINDS = 0.25
"""Part of the error of the cells of kinds, which are several times as many as the attributes that have a name."""

KIND = "kind"  # sort of the attributes that have no word yet


@dataclass(frozen=True)
class PromptCell(Record, Shown):
    """An attribute that pictures of prompts with a word have more often in one set.

    Attributes:
        word: the word or phrase of prompts; "" for all prompts.
        name: the attribute, such as "dark" or "goldfish".
        what: "look", "class", "kind", or the column of metadata that has the name.
        share_gen: share of the first set's images of these prompts that have it.
        share_ref: the same of the second set's.
        p_value: p-value adjusted for all cells.
        prompts: number of prompts with the word.
        sets: ids of some images by label: of the set that has more, images that have it; of the other, of their
            prompts.
    """

    word: str
    name: str
    what: str
    share_gen: float
    share_ref: float
    p_value: float
    prompts: int
    sets: dict[str, tuple[str, ...]]

    @property
    def title(self) -> str:
        """The word in quotes, or "all prompts"."""
        return quote(self.word) if self.word else "all prompts"

    def sentence(self, column: str, titles: Mapping[str, str]) -> str:
        """Say the cell in a sentence, with the titles of the sets by label."""
        own, other = titles.values()
        where = f"{column}s with {self.title}" if self.word else self.title
        has = {
            "look": f"are {self.name}",
            "class": f"look like {quote(self.name)}",
            KIND: f"are {'of the' if is_unnamed(self.name) else 'like'} {self.name}",
        }
        said = has.get(self.what, f"have {self.what} {quote(self.name)}")
        shares = [percent(share, 0) for share in (self.share_gen, self.share_ref)]
        return f"In {own}, {shares[0]} of the pictures of {where} {said} ({other} {shares[1]})."

    def _summary(self) -> str:
        shares = f"{percent(self.share_gen, 0)}, reference {percent(self.share_ref, 0)}"
        return f"{self.title}: {self.name} ({shares}), p={self.p_value:.2g}"


@dataclass(frozen=True, eq=False)
class Attributes:
    """Attributes of the samples of two sets, one set after the other."""

    names: tuple[tuple[str, str], ...]  # what an attribute is, and its name
    tested: NDArray[np.bool_]  # which samples count as having it in the test, shape (samples, attributes)
    has: NDArray[np.bool_]  # which samples have it, beyond what one in twenty of the reference has, of the same shape


def find_cells(
    sets: Mapping[str, Embeddings],
    blocks: Mapping[str, NDArray[np.int64]],
    paired: NDArray[np.int64],
    phrases: Phrases,
    measured: MeasuredSets,
    kinds: KindTree,
    column: str,
    seed: int,
    run: Run,
) -> Iterator[PromptCell]:
    """Yield the cells that differ, the clearest first.

    Args:
        sets: embeddings, "gen" and "ref".
        blocks: number of the prompt of each sample, by set, shape (n,); numbers from B on are of one set alone.
        paired: pairs that a prompt may have, shape (B,): one where images are copies or grouped.
        phrases: words and phrases of the B prompts.
        measured: looks, and columns of numbers, of the samples of both sets; empty if pictures are not at hand.
        kinds: kinds of both sets.
        column: the column of prompts.
        seed: random seed of the signs.
        run: portions and device.
    """
    panel = panel_of([], sets)
    own = {label: blocks[label][rows] for label, rows in panel.rows.items()}
    pairs = _pairs(own, paired)
    attributes = _attributes(panel, measured, kinds, column, run)
    table = _PromptCells(phrases, pairs, np.concatenate([*own.values()])[pairs[:, 0]], attributes, seed)
    named = {label: _without(samples, (*TEXT_COLUMNS, column)) for label, samples in panel.sets.items()}
    for place, word, p_value in table.choose():
        yield _cell(panel, named, np.concatenate([*own.values()]), phrases, attributes, (place, word, p_value))


def _pairs(own: Mapping[str, NDArray[np.int64]], paired: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return pairs of samples of one prompt, one of each set, by their numbers, in the order of prompts, (pairs, 2)."""
    most = paired.copy()
    for block in own.values():
        most = np.minimum(most, np.bincount(block, minlength=len(paired))[: len(paired)])
    chosen, start = [], 0
    for block in own.values():
        order = block.argsort(kind="stable")
        ordered = block[order]
        rank = np.arange(len(block)) - np.searchsorted(ordered, ordered)
        inside = ordered < len(paired)
        chosen.append(start + order[inside][rank[inside] < most[ordered[inside]]])
        start += len(block)
    return np.stack(chosen, 1)


def _attributes(panel: SampledSets, measured: MeasuredSets, kinds: KindTree, column: str, run: Run) -> Attributes:
    """Gather labels and columns, looks, classes, and kinds of the samples of a panel."""
    names: list[tuple[str, str]] = []
    tested, has = [], []
    for properties in (*metadata_properties(panel), *class_properties(panel)):
        of_one_set = not properties.known.all()
        if of_one_set or properties.are_ranges or properties.source in (*TEXT_COLUMNS, column):
            continue
        what = "class" if properties.source == CLASSIFIER else properties.source
        enough = np.flatnonzero(np.asarray(properties.has.sum(0)).ravel() >= MIN_UNLIKE)
        names += [(what, properties.values[place]) for place in enough.tolist()]
        tested.append(np.asarray(properties.has[:, enough].todense()) > 0)
        has.append(tested[-1])
    traits, by_set = measured
    if by_set:
        table, columns = columns_of(traits, by_set)
        values, of_ref = np.concatenate([each.values for each in by_set.values()]), by_set["ref"].values
        for place, each in enumerate(columns):
            if each.tail or each.trait.least is not None:
                names.append(("look", (each.trait.high if each.tail > 0 else each.trait.low) or each.trait.name))
                tested.append(np.concatenate([*table.values()])[:, [place]] > 0)
                ends = np.quantile(of_ref[:, each.place], [TAIL, 1 - TAIL])
                beyond = values[:, [each.place]] > ends[1] if each.tail > 0 else values[:, [each.place]] < ends[0]
                has.append(tested[-1] if each.trait.least is not None else beyond)
    leaves = np.concatenate([kinds.assign(samples.rows_at(rows), run)[0] for samples, rows, _ in panel.by_set()])
    inside = kinds.tree.members[:, leaves].T
    for node in np.flatnonzero((inside.mean(0) >= KINDS[0]) & (inside.mean(0) <= KINDS[1])).tolist():
        names.append((KIND, unnamed(f"k{node}")))
        tested.append(inside[:, [node]])
        has.append(tested[-1])
    empty = np.zeros((len(leaves), 0), bool)
    return Attributes(tuple(names), np.concatenate([empty, *tested], 1), np.concatenate([empty, *has], 1))


@dataclass(frozen=True, eq=False)
class _TestedAttribute:
    """The cells of an attribute."""

    words: NDArray[np.int64]  # phrases that have enough unlike pairs, shape (w,)
    z: Array  # shape (w,)
    alone: NDArray[np.bool_]  # which differ by themselves, shape (w,)
    largest: Array  # the largest |z| under each draw of signs, shape (r,)


class _PromptCells:
    """Pairs of images, the words of their prompts, and in which attributes they are unlike."""

    def __init__(
        self, phrases: Phrases, pairs: NDArray[np.int64], prompt: NDArray[np.int64], attributes: Attributes, seed: int
    ) -> None:
        first, second = attributes.tested[pairs[:, 0]], attributes.tested[pairs[:, 1]]
        self.unlike = first.astype(np.int8) - second.astype(np.int8)
        self.count = attributes.tested.sum(0)
        self.is_kind = np.array([what == KIND for what, _ in attributes.names], bool)
        self.phrases, self.has = phrases, phrases.has[prompt].tocsr()
        self.wanted = np.asarray(phrases.has.sum(0)).ravel() >= FEWEST_PROMPTS
        rng = np.random.default_rng(seed)
        self.signs = rng.integers(0, 2, (SIGNS, len(pairs))).astype(np.float32) * 2 - 1
        self.tests = [self._test(place) for place in range(len(attributes.names))]

    def choose(self) -> Iterator[tuple[int, int, float]]:
        """Yield the attribute, the phrase and the p-value of each cell that differs; kinds are asked last."""
        for _ in range(100):  # cells that a result keeps
            chosen = self._clearest(~self.is_kind, 1 - OF_KINDS) or self._clearest(self.is_kind, OF_KINDS)
            if chosen is None:
                return
            place, word, _, p_value = chosen
            yield place, word, p_value
            self._leave_out(place, word)

    def _clearest(self, family: NDArray[np.bool_], part: float) -> tuple[int, int, float, float] | None:
        """Return the attribute, the phrase, |z| and the p-value of the clearest cell of a family; None if none differs.

        Of attributes with equal |z|, such as a value and all other values, the rarest is taken.
        """
        places = np.flatnonzero(family)
        largest = np.max([np.zeros(SIGNS), *(self.tests[place].largest for place in places)], axis=0)[:, None]
        tops = np.array([np.abs(self.tests[place].z).max(initial=0.0) for place in places])
        best: tuple[int, int, float, float] | None = None
        for which in np.lexsort((self.count[places], -tops.round(6))).tolist():
            place, least = int(places[which]), best[2] if best else 0.0
            if tops[which] <= least or bonferroni(share_as_large(tops[which : which + 1], largest), part=part) > ALPHA:
                break
            test, data = self.tests[place], self.unlike[:, place].astype(float)
            z = np.zeros(self.has.shape[1])
            z[test.words] = test.z
            alone, every = test.words[test.alone], np.arange(len(data))
            word = clearest(self.phrases, self.has, alone, z, data, every, largest, part, {})
            if word is not None and abs(z[word]) > least:
                p_value = bonferroni(share_as_large(np.abs(z[word : word + 1]), largest), part=part)
                best = place, word, float(abs(z[word])), float(p_value[0])
        return best

    def _leave_out(self, place: int, word: int) -> None:
        """Leave the unlike pairs of a cell out of all attributes: what comes with it is no cell of its own."""
        there = (np.asarray(self.has[:, [word]].todense()).ravel() > 0) & (self.unlike[:, place] != 0)
        changed = np.flatnonzero((self.unlike[there] != 0).any(0))
        self.unlike[there] = 0
        for attribute in changed.tolist():
            self.tests[attribute] = self._test(attribute)

    def _test(self, place: int) -> _TestedAttribute:
        data = self.unlike[:, place].astype(np.float32)
        rows = np.flatnonzero(data)
        has = self.has[rows]
        words = np.flatnonzero((np.asarray(has.sum(0)).ravel() >= MIN_UNLIKE) & self.wanted)
        if not len(words):
            return _TestedAttribute(words, np.empty(0), np.empty(0, bool), np.zeros(SIGNS))
        columns = np.asarray(has[:, words].todense(), np.float32) * data[rows, None]
        scale = np.sqrt((columns**2).sum(0))
        z, drawn = columns.sum(0) / scale, np.abs(self.signs[:, rows] @ columns) / scale
        alone = share_as_large(np.abs(z), drawn) <= ALPHA
        return _TestedAttribute(words, z.astype(float), alone, drawn.max(1).astype(float))


def _without(samples: Embeddings, columns: Collection[str]) -> Embeddings:
    """Return a set without some columns, such as prompts, whose words do not name a kind of its pictures."""
    rest = Subset(samples, np.arange(samples.n))
    rest.columns = tuple(name for name in samples.columns if name not in columns)
    return rest


def _cell(
    panel: SampledSets,
    named: Mapping[str, Embeddings],
    block: NDArray[np.int64],
    phrases: Phrases,
    attributes: Attributes,
    chosen: tuple[int, int, float],
) -> PromptCell:
    """Describe a cell with its shares and with samples of both sets; kinds get a name by the columns of `named`."""
    place, word, p_value = chosen
    prompts = np.flatnonzero(np.asarray(phrases.has[:, [word]].todense()).ravel())
    inside, has = np.isin(block, prompts), attributes.has[:, place]
    parts = {label: slice_ for label, (_, _, slice_) in zip(panel.rows, panel.by_set(), strict=True)}
    shares = {label: float(has[part][inside[part]].mean()) for label, part in parts.items()}
    more_in = max(shares, key=lambda label: shares[label])
    shown = np.flatnonzero((inside & has)[parts[more_in]])
    of_prompts = np.isin(block, block[parts[more_in]][shown])
    ids = {
        label: panel.sets[label].ids_at(
            panel.rows[label][(shown if label == more_in else np.flatnonzero(of_prompts[part]))[:SHOWN]]
        )
        for label, part in parts.items()
    }
    what, name = attributes.names[place]
    if what == KIND:
        (found,) = name_by_members([{more_in: panel.rows[more_in][shown]}], named)
        name = found.noun or name
    return PromptCell(phrases.texts[word], name, what, shares["gen"], shares["ref"], p_value, len(prompts), ids)
