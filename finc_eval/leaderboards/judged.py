"""`Judgments`: scores and votes of the models of a board, read before the work and joined with its samples after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from finc_eval.core.errors import UsageError, did_you_mean
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.core.words import join_words, plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.columns import check_columns
from finc_eval.embeddings.needs import Known, needs_columns
from finc_eval.estimates.estimate import Estimate
from finc_eval.judges.asked_again import means_of
from finc_eval.judges.bradley_terry import Spread, StrengthFit
from finc_eval.judges.choosing import choose_judges
from finc_eval.judges.covariates import read_covariates, strengths_at_equal
from finc_eval.judges.dividing import Dividing
from finc_eval.judges.doubts import say_direction, say_doubts, say_prompts, say_rules, say_stated
from finc_eval.judges.judged_samples import rows_in, say_missing, with_prompts
from finc_eval.judges.layouts.scored import Scored
from finc_eval.judges.layouts.vbench_totals import mean_totals, reported_total, totals_of
from finc_eval.judges.paired import Array, Integers, Means
from finc_eval.judges.parts import Division, JudgedPart, find_parts, gains_of
from finc_eval.judges.power import MarginPlan, plan
from finc_eval.judges.prediction_powered import (
    CorrectedMeans,
    corrected_means,
    labeled_models,
    plan_labels,
    say_alone,
    say_correction,
)
from finc_eval.judges.sample_scores import SampleScores, rules_of, version_of
from finc_eval.judges.scores import columns_in, read_scores, scores_in
from finc_eval.judges.strengths import VOTES, Strengths
from finc_eval.judges.votes import read_votes
from finc_eval.judges.weighting import Weighting, bounds_of
from finc_eval.leaderboards.columns import SHARES, Column
from finc_eval.leaderboards.ranks import model_estimate
from finc_eval.leaderboards.reference import BoardReference
from finc_eval.measures.registry import METRICS
from finc_eval.samples.metadata import PROMPT_KEYS

NO_SCORES, NO_VOTES = "it has no scores", "it has no votes"


@dataclass(frozen=True, eq=False)
class Judgments:
    """Scores and votes that models of a board were given."""

    models: tuple[str, ...]  # all models of the board
    scores: Mapping[str, SampleScores]  # scores by model
    votes: Strengths | None
    lower: tuple[str, ...]  # judges whose lower scores are better
    columns: tuple[str, ...] = ()  # columns of the sets that are scores, until `joined` reads them
    covariates: tuple[str, ...] = ()  # names of the covariates of votes
    # divisions of the scored samples of each model, and of all votes by what each model shows
    divisions: Mapping[str, Mapping[str, Division]] = field(default_factory=dict)
    of_votes: Mapping[str, Mapping[str, Division]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()  # what to know of the tables, such as columns that were left out
    labels: Mapping[str, SampleScores] = field(default_factory=dict)  # labels of people of some samples, by model

    @classmethod
    def read(
        cls,
        scores: object,
        votes: object,
        models: Sequence[str],
        lower: Sequence[str],
        covariates: Sequence[str] = (),
        judges: Sequence[str] = (),
        labels: object = None,
    ) -> Judgments | None:
        """Read scores and votes; None if there are neither.

        `scores` are tables by model, tables with a column "model", or names of columns that all sets have. `judges` are
        the columns that are scores; default: see `choose_judges`. `labels` are tables as `scores` are, of people.

        Raises:
            UsageError: a judge has the name of a number of the board, or a name is unknown.
            DataError: a table cannot be read.
        """
        _check_needed(scores, votes, lower, covariates, judges, labels)
        columns, notes = columns_in(scores), list[str]()
        read: Mapping[str, SampleScores] = {}
        if columns:
            _check_known("judges", judges, columns)
            columns = tuple(judges) or columns
        elif scores is not None:
            read, notes = choose_judges(read_scores(scores, models, judges), judges)
        found = None if votes is None else Strengths.of(read_votes(votes, models, covariates))
        if scores is None and found is None:
            return None
        once = tuple(dict.fromkeys(covariates))
        of_people = {} if labels is None else read_scores(labels, models)
        judged = cls(tuple(models), read, found, tuple(lower), columns, once, remarks=tuple(notes), labels=of_people)
        judged._check_names()
        for tables in (read, of_people):
            for judge in dict.fromkeys(judge for table in tables.values() for judge in table.judges):
                version_of(judge, tables)  # refuses unlike ones before the work
        return judged

    @property
    def judges(self) -> tuple[str, ...]:
        """Names of all judges, in the order of the tables."""
        return (*self.columns, *dict.fromkeys(name for table in self.scores.values() for name in table.judges))

    @property
    def totals(self) -> tuple[str, ...]:
        """Scores that a benchmark makes of several judges."""
        return tuple(key for key in totals_of(self.scores) if key not in self.judges)

    @property
    def corrected(self) -> dict[str, tuple[str, str]]:
        """Key of each label that a judge predicts, with the names of both."""
        labels = dict.fromkeys(name for table in self.labels.values() for name in table.judges)
        return {f"{label} by {judge}": (label, judge) for label in labels for judge in self.judges}

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the numbers that models are ranked by."""
        return (*[VOTES] * (self.votes is not None), *self.judges, *self.totals, *self.corrected)

    def _check_names(self) -> None:
        for name in (*self.judges, *self.corrected):
            if name in SHARES or name in METRICS or name == VOTES:
                raise UsageError(
                    f"a column of scores is called {name!r}, as a number of the board is: rename the column"
                )
        _check_known("lower", self.lower, (*self.judges, *(label for label, _ in self.corrected.values())))

    def needs(self, sets: Mapping[str, Known]) -> None:
        """Raise UsageError unless the sets of models, and the reference, have the columns that are scores."""
        needs_columns(*self.columns, of=self.models)(sets)

    def joined(self, sets: Mapping[str, Embeddings], reference: BoardReference, run: Run) -> Judgments:
        """Return the same with the rows of the samples, their prompts and the parts that they are in.

        Args:
            sets: set of each model, of its first training run.
            reference: the reference, whose kinds divide the samples.
            run: device and portions of the computation.
        """
        scores = dict(self.scores)
        if self.columns:
            for name, samples in sets.items():
                check_columns(self.columns, samples.columns, name)
                known = [column for column in (*PROMPT_KEYS[:1], "seed") if column in samples.columns]
                texts = {column: list(samples.column(column)) for column in (*self.columns, *known)}
                table = Scored({"id": list(samples.ids_between(0, samples.n)), **texts}, self.columns)
                scores[name] = scores_in(table, name, wanted=self.columns)
        rows = {name: rows_in(name, scored, sets[name]) for name, scored in scores.items()}
        found = {name: with_prompts(scored, sets[name], rows[name]) for name, scored in scores.items()}
        labels = {
            name: with_prompts(table, sets[name], rows_in(name, table, sets[name]))
            for name, table in self.labels.items()
        }
        dividing = Dividing(reference.kinds, sets, reference.settings.by, run)
        missing = [text for name, scored in found.items() for text in say_missing(name, scored, rows[name], sets[name])]
        return replace(
            self,
            scores=found,
            labels=labels,
            votes=self._votes_at_equal(sets),
            columns=(),
            divisions=dividing.of_scores(found, rows) if found else {},
            of_votes={} if self.votes is None else dividing.of_votes(self.votes.votes),
            notes=(*self.notes, *missing),
        )

    def _votes_at_equal(self, sets: Mapping[str, Embeddings]) -> Strengths | None:
        if self.votes is None or not self.covariates:
            return self.votes
        votes = self.votes.votes
        return replace(self.votes, equal=strengths_at_equal(votes, read_covariates(votes, self.covariates, sets)))

    def results(self, seed: int) -> JudgmentResults:
        """Return the columns of the board, and what else scores and votes say."""
        made = JudgmentResults(notes=[*self.notes])
        undirected = [judge for judge in self.judges if not rules_of(judge, self.scores, self.scores)]
        made.remarks += [*self.remarks, *say_direction(undirected, self.lower), *say_doubts(self.scores)]
        if self.votes is not None:
            _add_votes(made, self, self.votes, seed)
        for judge in self.judges:
            _add_scores(made, self, judge, seed)
        for key in self.totals:
            _add_total(made, self, key)
        for key, (label, judge) in self.corrected.items():
            _add_labels(made, self, key, label, judge)
        return made


@dataclass(eq=False)
class JudgmentResults:
    """Columns of a board by scores and votes, and what else they say."""

    columns: list[Column] = field(default_factory=list)
    means: dict[str, Means] = field(default_factory=dict)  # means by judge
    corrected: dict[str, CorrectedMeans] = field(default_factory=dict)  # means of labels by judge, by their key
    stated: dict[str, dict[str, float]] = field(default_factory=dict)  # what files state of models, by judge
    equal: dict[str, list[Estimate]] = field(default_factory=dict)  # strengths at equal covariates by model
    parts: list[JudgedPart] = field(default_factory=list)
    plans: list[MarginPlan] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)  # what to know of the tables


def _check_needed(
    scores: object,
    votes: object,
    lower: Sequence[str],
    covariates: Sequence[str],
    judges: Sequence[str],
    labels: object,
) -> None:
    """Raise UsageError for a setting, or for labels, of scores or votes that are not given."""
    if labels is not None and scores is None:
        raise UsageError("labels correct a judge, and no scores are given: give --scores, or pass the labels as scores")
    for name, given, what, source in (
        ("covariates", covariates, "votes", votes),
        ("lower", lower, "scores", scores),
        ("judges", judges, "scores", scores),
    ):
        if given and source is None:
            raise UsageError(
                f"{name} names {join_words(list(given))}, and no {what} are given: give {what}, or leave it out"
            )


def _check_known(setting: str, names: Sequence[str], judges: Sequence[str]) -> None:
    if strange := [name for name in names if name not in judges]:
        raise UsageError(
            f"{setting} names {strange[0]!r}, which no scores have{did_you_mean(strange[0], judges)}: the judges are "
            f"{join_words(judges) or 'none'}"
        )


def _add_votes(made: JudgmentResults, judged: Judgments, votes: Strengths, seed: int) -> None:
    found, names = votes.votes, votes.votes.models
    estimates = _of_strengths(names, votes.fit, votes.spread)
    if votes.equal is not None:
        made.equal = _of_strengths(names, votes.equal.fit, votes.equal.spread)
    equal = [("covariates", "/".join(map(_plain, judged.covariates)))] * bool(judged.covariates)
    fields = ("n", str(found.n)), ("prompts", str(len(found.prompts))), ("voters", str(len(found.voters))), *equal
    title = "strength by votes: log odds of winning against a model of mean strength (Bradley-Terry, ties by Davidson)"
    without = {name: NO_VOTES for name in judged.models if name not in names}
    made.columns.append(
        Column(
            VOTES, title, True, Signature(VOTES, (("model", "davidson"), *fields)), (-inf, inf), estimates, {}, without
        )
    )
    made.parts += votes.parts(judged.of_votes, seed)
    made.plans += plan(VOTES, names, votes.fit.strengths, votes.spread.covariance, "votes", found.n)
    made.notes += [*votes.notes, *[f"{name} is not ranked by votes: {NO_VOTES}" for name in without]]


def _of_strengths(names: Sequence[str], fit: StrengthFit, spread: Spread) -> dict[str, list[Estimate]]:
    values, vectors = np.linalg.eigh(spread.covariance)
    return _estimates(names, fit.strengths, vectors * np.sqrt(values.clip(0)), spread.degrees)


def _add_scores(made: JudgmentResults, judged: Judgments, judge: str, seed: int) -> None:
    made.stated[judge] = {
        name: number for name, table in judged.scores.items() if (number := table.reported(judge)) is not None
    }
    kept, reasons = _scored_models(judged, judge)
    made.notes += [f"{name} is not ranked by {judge}: {reason}" for name, reason in reasons.items()] if kept else []
    values = {name: judged.scores[name].judges[judge][rows] for name, rows in kept.items()}
    prompts = {name: [judged.scores[name].prompts[row] for row in rows] for name, rows in kept.items()}
    rules = {name: rule.at(kept[name]) for name, rule in rules_of(judge, judged.scores, kept).items()}
    better, version = judge not in judged.lower, version_of(judge, judged.scores)
    means, asked = means_of(judge, judged.scores, kept, rules) if kept else (None, [])
    made.remarks += asked
    made.columns.append(_score_column(judge, better, means, bounds_of(values, rules), rules, version, reasons))
    if means is None:
        return
    made.means[judge] = means
    ours = dict(zip(means.models, means.values.tolist(), strict=True))
    made.remarks += [*say_stated(judge, ours, made.stated[judge], rules), *say_rules(judge, rules)]
    if any(table.has_prompts for table in judged.scores.values()) or means.is_paired:
        made.notes += say_prompts(judge, means, prompts, bool(rules))
    divided = {
        name: {by: parts.at(rows) for by, parts in judged.divisions.get(name, {}).items()}
        for name, rows in kept.items()
    }
    made.parts += find_parts(judge, *gains_of(means, values, prompts, divided, better), seed)
    if len(means.models) > 1:
        worth = means.values if better else -means.values
        covariance = means.covariance - means.fixed + np.diag(means.floors)
        of_seeds = means if means.is_paired else None
        have = min(means.prompts)
        made.plans += plan(judge, means.models, worth, covariance, "prompts", have, of_seeds, means.fixed)


def _add_total(made: JudgmentResults, judged: Judgments, key: str) -> None:
    """Add a score that VBench makes of its dimensions, for the models that have scores."""
    reasons = {name: NO_SCORES for name in judged.models if name not in judged.scores}
    means = made.means[key] = mean_totals(key, judged.scores)
    reported = {name: reported_total(key, table) for name, table in judged.scores.items()}
    made.stated[key] = {name: number for name, number in reported.items() if number is not None}
    rules = {name: Weighting.plain("VBench of its dimensions", 0) for name in judged.scores}
    made.columns.append(_score_column(key, True, means, (-inf, inf), rules, "", reasons))
    made.remarks += say_stated(
        key, dict(zip(means.models, means.values.tolist(), strict=True)), made.stated[key], rules
    )
    if len(means.models) > 1:
        covariance = means.covariance + np.diag(means.floors)
        made.plans += plan(key, means.models, means.values, covariance, "prompts", min(means.prompts))


def _scored_models(judged: Judgments, judge: str) -> tuple[dict[str, Integers], dict[str, str]]:
    """Return the rows with a score of each model that has enough of them, and the reasons of the others."""
    kept, reasons = dict[str, Integers](), dict[str, str]()
    for name in judged.models:
        table = judged.scores.get(name)
        rows = np.flatnonzero(np.isfinite(table.judges[judge])) if table and judge in table.judges else np.zeros(0, int)
        prompts = {table.prompts[row] for row in rows} if table else set()
        if not len(rows):
            reasons[name] = NO_SCORES
        elif len(prompts) < 2:
            reasons[name] = f"its scores are of {plural(len(prompts), 'prompt')}, and an interval needs two"
        else:
            kept[name] = rows
    return kept, reasons


def _score_column(
    judge: str,
    better: bool,
    means: Means | None,
    bounds: tuple[float, float],
    rules: Mapping[str, Weighting],
    version: str,
    reasons: Mapping[str, str],
) -> Column:
    """Return the column of the means of models by a judge; of no model without means."""
    names = list(dict.fromkeys(rule.rule for rule in rules.values()))
    prompts = "0" if means is None else "/".join(map(str, means.prompts))
    fields = [("prompts", prompts), ("better", "higher" if better else "lower")]
    fields += [("rule", _plain("/".join(names)))] * bool(rules) + [("version", _plain(version))] * bool(version)
    title = f"{judge} as its benchmark prints it ({join_words(names)})" if rules else f"mean of {judge} over prompts"
    estimates = (
        {} if means is None else _estimates(means.models, means.values, means.influences, means.degrees, means.floors)
    )
    return Column(judge, title, better, Signature(_plain(judge), tuple(fields)), bounds, estimates, {}, dict(reasons))


def _add_labels(made: JudgmentResults, judged: Judgments, key: str, label: str, judge: str) -> None:
    """Add the means of a label by people, from labels of some samples and a judge's scores of all."""
    labeled, reasons = labeled_models(judged.models, judged.labels, label, judged.scores, judge)
    better = label not in judged.lower
    title = f"mean of {label} over prompts, by people where they labeled, and by {judge} corrected by them elsewhere"
    numbers = "/".join(f"{len(found.labels)}+{len(found.others)}" for found in labeled.values())
    fields = ("prompts", numbers or "0"), ("better", "higher" if better else "lower")
    means = corrected_means(labeled) if labeled else None
    estimates = {} if means is None else _estimates(means.models, means.values, means.influences, means.degrees)
    versions = version_of(judge, judged.scores), version_of(label, judged.labels)
    named = [(name, _plain(text)) for name, text in zip(("version", "people"), versions, strict=True) if text]
    signature = Signature(_plain(key), (*fields, *named))
    made.columns.append(Column(key, title, better, signature, (-inf, inf), estimates, {}, reasons))
    # Labels of one model rank nobody, which `say_alone` says with the same reasons.
    made.notes += [f"{name} is not ranked by {key}: {reason}" for name, reason in reasons.items() if len(labeled) != 1]
    if means is not None:
        made.corrected[key] = means
        made.remarks.append(say_correction(means, label, judge, better == (judge not in judged.lower)))
        made.plans += plan_labels(key, means, better)
    made.remarks += say_alone(key, reasons, judge) if len(labeled) == 1 else []


def _plain(name: str) -> str:
    """Return a name as a signature may have it."""
    return name.replace("|", "/").replace(":", "/")


def _estimates(
    names: Sequence[str], values: Array, influences: Array, degrees: float, floors: Array | None = None
) -> dict[str, list[Estimate]]:
    """Return estimates of models by name from their joint influences, shape (p, b)."""
    found = {}
    for place, name in enumerate(names):
        least = 0.0 if floors is None else float(floors[place])
        found[name] = [model_estimate(float(values[place]), least, influences[place], degrees=degrees)]
    return found
