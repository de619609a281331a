"""Cells of a table, words of prompts × what pictures have: labels, columns of metadata, looks, classes and kinds.

Each cell is tested by the images of its prompts (`cell_tests`). Cells of kinds are a family of their own, and are asked
last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from pydantic import computed_field

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
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.prompts.cell_tests import CellTests
from finc_eval.prompts.words import Phrases

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


@dataclass(frozen=True)
class PromptPlan(Record, Shown):
    """A cell that is not decided, and how many prompts with its word decide it.

    Attributes:
        cell: the cell, whose p-value is above 0.05.
        needed: number of prompts with the word that decide it in 80 % of repetitions, if its shares are true.
    """

    cell: PromptCell
    needed: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def more(self) -> int:
        """Number of prompts with the word to add to those at hand."""
        return self.needed - self.cell.prompts

    def _summary(self) -> str:
        return f"{self.more} more prompts with {self.cell.title} decide: {self.cell.name}"


@dataclass(frozen=True)
class FoundCells:
    """The cells that differ, and plans of cells that may, the ones that take the fewest prompts first."""

    found: tuple[PromptCell, ...]
    plans: tuple[PromptPlan, ...]


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
) -> FoundCells:
    """Find the cells that differ, the clearest first, and plan what decides others.

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
    images, is_kind = pairs.T.ravel(), np.array([what == KIND for what, _ in attributes.names], bool)
    table = CellTests(
        phrases,
        np.concatenate([*own.values()])[images],
        np.arange(len(images)) < len(pairs),
        attributes.tested[images],
        np.stack([~is_kind, is_kind]),
        (1 - OF_KINDS, OF_KINDS),
        seed,
    )
    named = {label: _without(samples, (*TEXT_COLUMNS, column)) for label, samples in panel.sets.items()}
    describe = partial(_cell, panel, named, np.concatenate([*own.values()]), phrases, attributes)
    found = tuple(describe(chosen) for chosen in table.choose())
    plans = tuple(PromptPlan(describe(each[:3]), each[3]) for each in table.undecided())
    return FoundCells(found, plans)


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
        # 8: images that have an attribute; of fewer, hardly any cell can be significant.
        enough = np.flatnonzero(np.asarray(properties.has.sum(0)).ravel() >= 8)
        names += [(what, properties.values[place]) for place in enough.tolist()]
        tested.append(np.asarray(properties.has[:, enough].todense()) > 0)
        has.append(tested[-1])
    traits, by_set = measured
    if by_set:
        table, columns = columns_of(traits, by_set)
        values, of_ref = np.concatenate([each.values for each in by_set.values()]), by_set["ref"].values
        for place, each in enumerate(columns):
            # No word, no attribute: nobody says that pictures are hardly pixelated.
            word = each.trait.high if each.tail > 0 else each.trait.low
            if word and (each.tail or each.trait.least is not None):
                names.append(("look", word))
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
