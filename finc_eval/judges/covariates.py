"""Covariates of votes, such as brightness or length: their effects, and strengths if all models showed the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.record import Record
from finc_eval.core.words import join_words, plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.estimates.error_source import ErrorSource
from finc_eval.estimates.estimate import Estimate
from finc_eval.judges.bradley_terry import Spread, StrengthFit, fit_strengths, spread_of
from finc_eval.judges.dividing import rows_by_prompt
from finc_eval.judges.paired import Array, Integers
from finc_eval.judges.tables import number_of
from finc_eval.judges.votes import Votes
from finc_eval.naming.measured import looks_of, measure_rows

SIDE = "side"  # covariate that is 1 on the left and 0 on the right


@dataclass(frozen=True)
class CovariateEffect(Record):
    """The effect of a covariate on votes.

    Attributes:
        name: name of the covariate.
        effect: log odds of winning by `unit` more of it, between models of one strength.
        interval: 95 % interval of the effect, with prompts and voters as clusters.
        p_value: p-value of "it does nothing", of this covariate alone.
        unit: one standard deviation over all that was shown; of a text, of the logarithm of its length.
        votes: number of votes behind it, for which all covariates are known.
    """

    name: str
    effect: float
    interval: tuple[float, float]
    p_value: float
    unit: float
    votes: int


@dataclass(frozen=True, eq=False)
class Covariate:
    """A number of what each vote shows on its two sides."""

    name: str
    left: Array  # shape (v,); NaN where it is not known
    right: Array

    @property
    def unit(self) -> float:
        """Standard deviation over both sides of all votes; 1 of the side itself."""
        return 1.0 if self.name == SIDE else float(np.nanstd(np.concatenate([self.left, self.right])))


@dataclass(frozen=True, eq=False)
class EqualStrengths:
    """Strengths of models as if all showed the same of each covariate, their joint error, and what covariates do."""

    fit: StrengthFit
    spread: Spread
    effects: tuple[CovariateEffect, ...]
    notes: tuple[str, ...]


def strengths_at_equal(votes: Votes, covariates: Sequence[Covariate]) -> EqualStrengths:
    """Fit votes with covariates; log strengths are θ + β·x of what is shown.

    Raises:
        DataError: a covariate is not known, follows from the models or from others, or decides votes entirely.
    """
    differences = np.column_stack(
        [(covariate.left - covariate.right) / (covariate.unit or 1.0) for covariate in covariates]
    )
    known = np.isfinite(differences).all(1)
    for covariate, difference in zip(covariates, differences.T, strict=True):
        if not np.isfinite(difference).any():
            raise DataError(f"no vote has a {covariate.name} of both samples that it shows: leave {covariate.name} out")
    left, right, outcome, prompt, voter = (
        column[known] for column in (votes.left, votes.right, votes.outcome, votes.prompt, votes.voter)
    )
    differences = differences[known]
    _check_free(votes, covariates, left, right, differences)
    fit = fit_strengths(left, right, outcome, len(votes.models), differences)
    names = join_words([covariate.name for covariate in covariates])
    if not fit.is_finite:
        raise DataError(f"{names} would explain some votes entirely, so that strengths have no bound: leave it out")
    clusters = [np.unique(units, return_inverse=True)[1] for units in (prompt, voter)]
    lacking = votes.n - int(known.sum())
    are = "is" if lacking == 1 else "are"
    notes = [f"{plural(lacking, 'vote')} of {votes.n:,} without a known {names} {are} not counted at equal {names}"]
    return EqualStrengths(
        fit=fit,
        spread=spread_of(fit, *clusters),
        effects=tuple(
            _effect(covariate, fit, place, spread_of(fit, *clusters, of=fit.design.slopes[[place]]))
            for place, covariate in enumerate(covariates)
        ),
        notes=tuple(notes[: bool(lacking)]),
    )


def _effect(covariate: Covariate, fit: StrengthFit, place: int, spread: Spread) -> CovariateEffect:
    source = ErrorSource.of_variance("votes", float(spread.covariance[0, 0]), spread.degrees)
    found = Estimate.of(float(fit.effects[place]), (source,))
    return CovariateEffect(covariate.name, found.value, found.interval, found.p_value, covariate.unit, len(fit.scores))


def _check_free(
    votes: Votes, covariates: Sequence[Covariate], left: Integers, right: Integers, differences: Array
) -> None:
    """Raise DataError for a covariate whose differences follow from the models and the covariates before it."""
    models = np.eye(len(votes.models))
    known = models[left] - models[right]
    for place, covariate in enumerate(covariates):
        difference = differences[:, place]
        rest = difference - known @ np.linalg.lstsq(known, difference, rcond=None)[0]
        if rest @ rest <= 1e-9 * (difference @ difference):  # rounding leaves about 1e-30
            raise DataError(
                f"{covariate.name} is the same whatever the model, or follows from the model"
                f"{' and ' * (place > 0)}{join_words([each.name for each in covariates[:place]])}: leave it out"
            )
        known = np.column_stack([known, difference])


def read_covariates(votes: Votes, names: Sequence[str], sets: Mapping[str, Embeddings]) -> list[Covariate]:
    """Return covariates by name: columns of the votes or of the sets, looks of the pictures shown, or the side.

    A prompt with several samples of a model has their mean. A column of texts counts by the logarithm of its length.

    Raises:
        UsageError: a name is not known, or the pictures of a model are not at hand.
    """
    found = []
    shared = [
        name for name in sets[votes.models[0]].columns if all(name in sets[model].columns for model in votes.models)
    ]
    for name in names:
        if name in votes.shown:
            left, right = _numbers_of(votes.shown[name])
            found.append(Covariate(name, left, right))
        elif name == SIDE:
            found.append(Covariate(name, np.ones(votes.n), np.zeros(votes.n)))
        elif name in shared:
            columns = _numbers_of([sets[model].column(name) for model in votes.models])
            of_models = [values[:, None] for values in columns]
            found += _of_models(votes, (name,), sets, of_models)
    looks = [name for name in names if name not in {covariate.name for covariate in found}]
    known = [look.name for look in looks_of(sets[votes.models[0]])]
    if strange := [look for look in looks if look not in known]:
        every = [*votes.shown, SIDE, *shared, *known]
        raise UsageError(
            f"covariates names {strange[0]!r}, which neither votes nor sets have{did_you_mean(strange[0], every)}: "
            f"give the columns left_{strange[0]} and right_{strange[0]} to the votes, or take {join_words(every, 'or')}"
        )
    if looks:
        found += _of_looks(votes, looks, known, sets)
    return sorted(found, key=lambda covariate: names.index(covariate.name))


def _of_looks(
    votes: Votes, looks: Sequence[str], known: Sequence[str], sets: Mapping[str, Embeddings]
) -> list[Covariate]:
    places, values = [known.index(look) for look in looks], []
    for model in votes.models:
        samples = sets[model]
        rows = np.unique(np.concatenate([*rows_by_prompt(votes, samples), np.empty(0, np.int64)]).astype(np.int64))
        measured = measure_rows(samples, rows)
        if measured is None:
            raise UsageError(
                f"covariates names {join_words(looks)}, and the pictures of {model} are not at hand: pass its samples"
            )
        values.append(np.full((samples.n, len(looks)), np.nan))
        values[-1][rows] = measured[:, places]
    return _of_models(votes, looks, sets, values)


def _of_models(
    votes: Votes, names: Sequence[str], sets: Mapping[str, Embeddings], values: Sequence[Array]
) -> list[Covariate]:
    """Return covariates from values of the samples of each model, shape (n, covariates)."""
    shown = np.full((len(votes.models), len(votes.prompts), len(names)), np.nan)
    for place, model in enumerate(votes.models):
        for prompt, rows in enumerate(rows_by_prompt(votes, sets[model])):
            if len(rows):
                shown[place, prompt] = values[place][rows].mean(0)
    left, right = (shown[side, votes.prompt] for side in (votes.left, votes.right))
    return [Covariate(name, left[:, column], right[:, column]) for column, name in enumerate(names)]


def _numbers_of(columns: Sequence[Sequence[str]]) -> list[Array]:
    """Return columns as numbers; if any cell is another text, as the logarithms of the lengths of texts."""
    numbers = [[number_of(cell) for cell in column] for column in columns]
    if all(number is not None for column in numbers for number in column):
        found = [np.array(column, float) for column in numbers]
        return [np.where(np.isfinite(numbers), numbers, np.nan) for numbers in found]
    return [np.log1p([len(cell) if cell else np.nan for cell in column]) for column in columns]
