"""`Leaderboard`: models ranked against one reference, with ranks that hold together; `Panel`: several of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Annotated, ClassVar, NamedTuple, Self

from pydantic import computed_field, model_validator

from finc_eval.core.errors import IncompatibleError, UsageError, did_you_mean
from finc_eval.core.record import NOT_IN_JSON, Record, check_names, plain
from finc_eval.core.serialize import Document, Shown
from finc_eval.core.signature import SignatureText
from finc_eval.core.words import figure, join_words, plural
from finc_eval.embeddings.recipe import extractor_of
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.pictured import Pictures
from finc_eval.judges.covariates import CovariateEffect
from finc_eval.judges.parts import JudgedPart
from finc_eval.judges.power import MarginPlan
from finc_eval.judges.strengths import Upset
from finc_eval.leaderboards.settings import LeaderboardSettings
from finc_eval.leaderboards.standings import Criterion, Row, ScoreStanding, Standing, VoteStanding, run_label
from finc_eval.partitions.kind import Kind, check_kinds
from finc_eval.partitions.placed import KindPlaces
from finc_eval.partitions.settings import REFERENCE
from finc_eval.partitions.values import SharesBy

SAID = 8  # models with, and without, a fault that a headline names at most


@dataclass(frozen=True)
class Place(Record):
    """A model on one board of a panel.

    Attributes:
        value: the number.
        interval: 95 % interval of it.
        rank_set: lowest and highest rank that the model may have; None if it is not ranked.
    """

    value: float | None
    interval: tuple[float, float] | None
    rank_set: tuple[int, int] | None


@dataclass(frozen=True)
class Side(Record):
    """One board of a panel.

    Attributes:
        label: its label, such as the name of the extractor.
        signature: signature of its number.
        places: the models by name.
    """

    label: str
    signature: SignatureText
    places: dict[str, Place]


@dataclass(frozen=True)
class Reversal(Record):
    """Two models, each surely better than the other on some board.

    Attributes:
        first: a model.
        second: another.
        first_better: boards on which the first is surely better.
        second_better: boards on which the second is.
    """

    first: str
    second: str
    first_better: tuple[str, ...]
    second_better: tuple[str, ...]


@dataclass(frozen=True)
class Panel(Record, Shown):
    """The same models on several boards, by one number.

    Attributes:
        by: key of the number.
        sides: the boards, first the board that has the panel.
        reversals: pairs of models that boards rank in opposite orders, both surely.
        moved: models whose rank sets on two boards have no rank in common.
    """

    by: str
    sides: tuple[Side, ...]
    reversals: tuple[Reversal, ...]
    moved: tuple[str, ...]

    def _summary(self) -> str:
        boards = join_words([side.label for side in self.sides])
        pairs, models = plural(len(self.reversals), "pair"), plural(len(self.moved), "model")
        return f"by {self.by} on {boards}: {pairs} in opposite orders, {models} without a common rank"

    def _frame_rows(self) -> list[dict[str, object]]:
        return [
            {
                "name": name,
                "board": side.label,
                "value": place.value,
                "interval": place.interval,
                **dict(zip(("rank.low", "rank.high"), place.rank_set or (None, None), strict=True)),
            }
            for side in self.sides
            for name, place in side.places.items()
        ]


def opposite_orders(
    names: Sequence[str], criteria: Mapping[str, Criterion], alpha: float
) -> Iterator[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Yield the pairs of models that two criteria rank in opposite orders, both surely, with the labels of each."""
    for first, second in combinations(names, 2):
        better = tuple(label for label, criterion in criteria.items() if criterion.better(first, second, alpha))
        worse = tuple(label for label, criterion in criteria.items() if criterion.better(second, first, alpha))
        if better and worse:
            yield first, second, better, worse


class Disagreement(NamedTuple):
    """Two models, each surely better than the other by some number."""

    first: str
    second: str
    first_better_by: tuple[str, ...]
    second_better_by: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Leaderboard(Document):
    """Models ranked against one reference.

    Attributes:
        rows: the models, the best estimate first; models that are not ranked come last.
        rank_by: key of the number that orders the rows.
        criteria: the numbers that the models are ranked by.
        covers: noise that ranks and intervals cover.
        kinds: all kinds; every sample belongs to exactly one. The first kinds are those that a model or the reference
            has significantly more or less of than all others.
        by: shares of the values of the column `by`, such as labels; None if none was asked for.
        headings: unions of kinds that all differ in the same way; their `children` are ids of `kinds`.
        sets: the models and the reference, by label.
        alpha: probability that any of the rank sets by one number is wrong.
        settings: settings, as asked for.
        signature: everything that changes the numbers save the models.
        warnings: what to know before trusting the numbers.
        panel: the same models on other boards, such as by other extractors (`beside`); None without any.
        scores: the models by the scores of each judge, the best first; empty if none were given.
        votes: the models by votes, the best first; empty if none were given.
        covariates: what covariates of votes do; empty if none were asked for.
        parts: kinds, labels, looks and words where a judge or voters prefer a model more, or less, than elsewhere.
        plan: how many prompts, seeds or votes decide the margins of neighbors by scores and by votes; empty if it was
            not asked for.
        upset: how few votes would change who is first; None without votes, or if no number of them does.
        places: a map of the kinds, on which each model is drawn; None for a board of an earlier version.
        kept: small pictures of samples that a stored board kept, by label and id; None for any other board.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()
        >>> board = fe.leaderboard({"a": 1 - gen, "b": ref[:200]}, ref[200:])  # a draws white on black
        >>> board.rows[0].name, board.rows[0].rank_set, board.separable("a", "b")
        ('b', (1, 1), True)
    """

    type_name: ClassVar[str] = "leaderboard"
    page: ClassVar[str] = "finc_eval.leaderboards.page"
    has_profiles: ClassVar[bool] = True  # whether the page has a card of each model

    rows: tuple[Row, ...]
    rank_by: str
    criteria: tuple[Criterion, ...]
    covers: str
    kinds: tuple[Kind, ...]
    headings: tuple[Kind, ...]
    sets: dict[str, SetInfo]
    alpha: float
    settings: LeaderboardSettings
    signature: SignatureText
    warnings: tuple[str, ...]
    panel: Panel | None = None
    by: SharesBy | None = field(default=None, kw_only=True)
    scores: tuple[ScoreStanding, ...] = field(default=(), kw_only=True)
    votes: tuple[VoteStanding, ...] = field(default=(), kw_only=True)
    covariates: tuple[CovariateEffect, ...] = field(default=(), kw_only=True)
    parts: tuple[JudgedPart, ...] = field(default=(), kw_only=True)
    plan: tuple[MarginPlan, ...] = field(default=(), kw_only=True)
    upset: Upset | None = field(default=None, kw_only=True)
    places: KindPlaces | None = field(default=None, kw_only=True)
    kept: Annotated[Pictures | None, *NOT_IN_JSON] = field(default=None, kw_only=True, repr=False)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        keys, names = {criterion.key for criterion in self.criteria}, {row.name for row in self.rows}
        check_kinds(self.kinds, self.headings, {*names, REFERENCE})
        check_kinds(self.by.kinds if self.by else (), (), {*names, REFERENCE})
        check_names("number", [self.rank_by], keys)
        check_names("set", [REFERENCE], self.sets)
        check_names("kind", self.places.kinds if self.places else (), {kind.id for kind in self.kinds})
        for row in self.rows:
            check_names("set", (run_label(row.name, number) for number in range(row.runs)), self.sets)
            check_names("number", row.scores, keys)
            check_names("number", keys, row.scores)
        for criterion in self.criteria:
            check_names("model", (*criterion.names, *(name for group in criterion.groups for name in group)), names)
            if not all(criterion.groups) or bool(criterion.groups) != bool(criterion.names):
                raise ValueError(f"has groups of {criterion.key} without models")
            if {len(criterion.names)} != {len(criterion.p_values), *map(len, criterion.p_values)} and criterion.names:
                raise ValueError(f"has not a p-value of {criterion.key} for each two of its models")
        return self

    @computed_field  # type: ignore[prop-decorator]
    @property
    def headline(self) -> str:
        """The faults of the worst model, those of others in few words, and which models have none that was found."""
        return "; ".join(self.headline_parts.values()) + "."

    @property
    def faulty(self) -> tuple[Row, ...]:
        """Models with a fault, the worst first."""
        # Of equal faults, such as of whole sets, that of the last row counts first.
        found = (row for row in reversed(self.rows) if row.faults)
        return tuple(sorted(found, key=lambda row: -(row.fault_size or 0)))

    @property
    def headline_parts(self) -> dict[str, str]:
        """Parts of the headline, by key: "fault of NAME", the worst first; "more"; "clean"; "unknown"."""
        faulty = self.faulty
        clean = [row.name for row in self.rows if row.fault_size is not None and not row.faults]
        unknown = [row.name for row in self.rows if row.fault_size is None]
        faults = [f"{row.name}: {', '.join(row.fault_names)}" for row in faulty[:SAID]]
        for row in faulty[:1]:
            faults[0] = f"{row.name}{' is worst' * (len(self.rows) > 1)}: {row.fault}"
        parts = {f"fault of {row.name}": fault for row, fault in zip(faulty, faults, strict=False)}
        if len(faulty) > SAID:
            parts["more"] = f"{plural(len(faulty) - SAID, 'more model')} with faults"
        for key, names, said in (("clean", clean, "no fault found"), ("unknown", unknown, "not looked at for faults")):
            if names:
                parts[key] = f"{join_words(names) if len(names) <= SAID else f'{len(names)} models'}: {said}"
        return parts

    @property
    def without_pictures(self) -> tuple[str, ...]:
        """Labels of the sets that were measured from samples and keep no picture."""
        kept = self.kept or {}
        return tuple(label for label, info in self.sets.items() if info.source is not None and label not in kept)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Names of the models of each group, by the number that orders the rows."""
        return self.criterion().groups

    @property
    def extractor(self) -> str:
        """Name of the extractor; "array-64" for arrays of 64 numbers a sample, which do not name their extractor."""
        return extractor_of(self.signature.space)

    def __getitem__(self, name: str) -> Row:
        names = [row.name for row in self.rows]
        if name not in names:
            raise UsageError(f"no model is called {name!r}{did_you_mean(str(name), names)}: {', '.join(names)}")
        return self.rows[names.index(name)]

    def criterion(self, by: str | None = None) -> Criterion:
        """Return a number that models are ranked by; default: the number that orders the rows.

        Raises:
            UsageError: the models are not ranked by it.
        """
        keys = [criterion.key for criterion in self.criteria]
        wanted = self.rank_by if by is None else by
        if wanted not in keys:
            raise UsageError(
                f"the board does not rank by {wanted!r}{did_you_mean(wanted, keys)}: it has {join_words(keys)}"
            )
        return self.criteria[keys.index(wanted)]

    def separable(self, first: str, second: str, by: str | None = None) -> bool:
        """Return whether two models can be distinguished.

        All pairs are tested together: that any two equal models are called different has probability 0.05 at most.

        Args:
            first: name of a model.
            second: name of another.
            by: number to compare them by; default: the number that orders the rows.

        Raises:
            UsageError: a name is unknown.
            DataError: a model is not ranked by that number.
        """
        return self.criterion(by).p_value(self[first].name, self[second].name) <= self.alpha

    def disagreements(self) -> tuple[Disagreement, ...]:
        """Return the pairs of models that numbers rank in opposite orders, both surely."""
        criteria = {criterion.key: criterion for criterion in self.criteria}
        found = opposite_orders([row.name for row in self.rows], criteria, self.alpha)
        return tuple(Disagreement(*order) for order in found)

    def more_of(self, first: str, second: str) -> tuple[Kind, ...]:
        """Return the kinds that one model surely makes more of than another, the largest difference first.

        All intervals of shares of a board hold together with probability 0.95, and the intervals of the two do not
        overlap.

        Args:
            first: name of the model that makes more, or "ref".
            second: name of the other, or "ref".

        Raises:
            UsageError: a name is unknown.
        """
        for name in (first, second):
            if name != REFERENCE:
                self[name]
        found = [kind for kind in self.kinds if kind.shares[first].interval[0] > kind.shares[second].interval[1]]
        return tuple(sorted(found, key=lambda kind: kind.shares[second].share - kind.shares[first].share))

    def beside(self, others: Mapping[str, Leaderboard], label: str | None = None) -> Leaderboard:
        """Return the board with the ranks of the same models on other boards, such as by other extractors.

        Disagreement is flagged: pairs that boards rank in opposite orders, both surely, and models whose rank sets
        have no rank in common.

        Args:
            others: boards of the same models by label.
            label: label of this board; default: the name of its extractor.

        Raises:
            UsageError: a board does not rank by the number that orders the rows here, or two boards have one label.
            IncompatibleError: the models of two boards differ.
        """
        name_here = label or self.extractor
        if name_here in others:
            raise UsageError(f"two boards are called {name_here!r}: give this board a label, or rename the other")
        if not others:
            raise UsageError("at least two boards are needed side by side, got 1")
        names, sides, criteria = [row.name for row in self.rows], [], {}
        for label, board in {name_here: self, **others}.items():
            criteria[label] = board.criterion(self.rank_by)
            if unlike := sorted({*names} ^ {row.name for row in board.rows}):
                raise IncompatibleError(
                    f"the boards {name_here} and {label} differ in {join_words(unlike)}: rank the same models"
                )
            standings = {row.name: row.scores[self.rank_by] for row in board.rows}
            places = {
                name: Place(standing.value, standing.interval, standing.rank_set)
                for name, standing in standings.items()
            }
            sides.append(Side(label, criteria[label].signature, places))
        reversals = tuple(Reversal(*order) for order in opposite_orders(names, criteria, self.alpha))
        moved = []
        for name in names:
            known = [ranks for side in sides if (ranks := side.places[name].rank_set) is not None]
            if known and max(low for low, _ in known) > min(high for _, high in known):
                moved.append(name)
        return replace(self, panel=Panel(self.rank_by, tuple(sides), reversals, tuple(moved)))

    def _frame_rows(self) -> list[dict[str, object]]:
        lines = [_cells(row, key, score) for row in self.rows for key, score in row.scores.items()]
        if self.panel is None:
            return lines
        first, *others = self.panel.sides
        further = [_cells(row, self.rank_by, side.places[row.name]) for side in others for row in self.rows]
        spaces = [first.label] * len(lines) + [side.label for side in others for _ in self.rows]
        return [{"space": space, **line} for space, line in zip(spaces, [*lines, *further], strict=True)]

    def _lines(self) -> Iterator[str]:
        for row in self.rows:
            low, high = row.rank_set or ("–", "–")
            numbers = ", ".join(f"{key} {figure(score.value)}" for key, score in row.scores.items())
            yield f"{low if low == high else f'{low}–{high}'}  {row.titled}: {numbers}"

    def _summary(self) -> str:
        main = self.criterion()
        order = " > ".join(" = ".join(self[name].titled for name in group) for group in main.groups) or "none is ranked"
        return f"{order} by {self.rank_by}: {main.separable_pairs} of {plural(main.pairs, 'pair')} can be distinguished"


def _cells(row: Row, key: str, standing: Standing | Place) -> dict[str, object]:
    """Return a line of the table: a model by one number, with the ends of its rank set as columns."""
    low, high = standing.rank_set or (None, None)
    fixed = {"name": row.name, "runs": row.runs, "fault": row.fault, "by": key, "rank.low": low, "rank.high": high}
    return {**fixed, **plain(standing)}
