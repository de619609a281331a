"""Measurements of the samples of an evaluation, against what a monitor holds fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.gallery.thumbnails import Thumbnail, thumbnail
from finc_eval.monitoring.basis import FAR, REPEAT, TRACES, Basis
from finc_eval.monitoring.causes import count_shared
from finc_eval.monitoring.evaluations import TRACED, EvaluationPart, join_parts
from finc_eval.monitoring.evidence.asked import TAIL
from finc_eval.monitoring.evidence.classifiers import AskedSamples, Classifiers
from finc_eval.monitoring.evidence.saturation import saturation_of
from finc_eval.monitoring.evidence.units import one_of_each
from finc_eval.monitoring.exchange import Array
from finc_eval.monitoring.followed import COPIED, FIT, FLAGS, LOOKS, MARK, NEW_KINDS, PARTS, REPEATS, SCORES, SHARES
from finc_eval.monitoring.naming import words_of_found
from finc_eval.monitoring.seen import MOSTLY, SeenRepeats
from finc_eval.monitoring.shown import SHOWN, Ends, ShownSamples
from finc_eval.naming.measured import looked_rows
from finc_eval.naming.repeated import Repeats
from finc_eval.naming.texture import shared_marks
from finc_eval.naming.traits import TRAITS, Trait, measure_looks

TOGETHER = 4  # samples of a unit of diversity: the mean of their six distances
PICTURES = 64  # pictures in memory
ALL = "all"  # label of the samples of an evaluation, which are a set of their own
EDGE = 48  # pixels of the longer edge of a thumbnail: seven of them are 336 wide

PLACES = {trait.name: place for place, trait in enumerate(TRAITS)}
PLACE_OF_MARK = len(SCORES) + [look.name for look in LOOKS].index(MARK)  # among the scores

Indices = NDArray[np.int64]
Groups = Indices | None  # number of the prompt of each sample


def measure(
    embeddings: Embeddings,
    basis: Basis,
    rng: np.random.Generator,
    *,
    prompts: Groups = None,
    alone: Groups = None,
    fits: Array | None = None,
    run: Run,
    middles: Array | None = None,
    classifiers: Classifiers | None = None,
) -> EvaluationPart:
    """Measure the samples of an evaluation.

    Args:
        embeddings: the samples.
        basis: what is held fixed.
        rng: draws the units of diversity, and the samples of `alone`.
        prompts: number of the prompt of each sample, for the diversity within prompts.
        alone: number of the group of each sample: in the tests, one sample of a group counts; None: all count.
        fits: fit of each sample to its prompt; None if it is not known.
        run: device and portions.
        middles: medians of the scores in the reference; None where it is not asked which samples have what.
        classifiers: what marks samples of new kinds besides those that are far, and parts; None of the reference.
    """
    parts = []
    counted = np.ones(embeddings.n, bool) if alone is None else one_of_each(alone, rng)
    for batch in embeddings.batches(run.portion):
        here = np.arange(batch.start, batch.start + len(batch.rows))
        own = None if prompts is None else prompts[here]
        fit = np.empty(0) if fits is None else fits[here]
        parts.append(_with_fit(_of_rows(batch.rows.cpu(), basis, rng, counted[here], own, run), fit, counted[here]))
    whole = join_parts(parts)
    looked = looked_rows(embeddings)
    has_marks = middles is None or bool(np.isfinite(middles[PLACE_OF_MARK]))
    values, pictures = _look_at(embeddings, looked, counted[looked] & has_marks, basis, run)
    if values is not None:
        whole = _with_looks(whole, values, looked, counted)
    if middles is None:
        return whole
    known = None if fits is None else fits[looked]
    whole = replace(whole, shown=ShownSamples(pictures))
    whole, found = _with_classified(whole, embeddings, looked, counted, basis, classifiers, rng)
    return _with_members(whole, embeddings, looked, values, known, basis, middles, found, run)


def _with_classified(
    part: EvaluationPart,
    embeddings: Embeddings,
    rows: Indices,
    counted: NDArray[np.bool_],
    basis: Basis,
    classifiers: Classifiers | None,
    rng: np.random.Generator,
) -> tuple[EvaluationPart, NDArray[np.bool_]]:
    """Mark samples of new kinds and samples with new parts, (2, n), and add their shares and who is asked about."""
    far = basis.distances(embeddings.rows_at(rows).cpu(), Run(device="cpu")) > basis.far
    if classifiers is None:
        return part, np.stack([far, np.zeros(len(rows), bool)])
    asked, found, parts = classifiers.ask(embeddings, rows, counted[rows], rng)
    found[0] |= far
    sums, first = part.sums.copy(), len(basis.nodes)
    sums[first + SHARES.index(NEW_KINDS)] = found[0].sum(), len(rows)
    sums[first + SHARES.index(PARTS)] = parts
    return replace(part, sums=sums, asked=asked), found


def _of_rows(
    rows: torch.Tensor, basis: Basis, rng: np.random.Generator, counted: NDArray[np.bool_], prompts: Groups, run: Run
) -> EvaluationPart:
    """Measure embeddings, shape (b, d)."""
    n = len(rows)
    leaf, _ = basis.tree.assign(rows, run)
    distance = basis.distances(rows, run)
    has = np.concatenate([basis.members[:, leaf], [distance > basis.far, basis.originals.are_near(rows)]])
    units = rows[torch.from_numpy(rng.permutation(np.flatnonzero(counted)))]
    shares = np.column_stack([has[:, counted].sum(1), np.full(len(has), counted.sum())])
    between = _mean_distances(units, TOGETHER)
    inside = _within(rows, prompts)
    # Repeats are counted among the samples of all processes: see `with_repeats`.
    sums = [*((one.sum(), n) for one in has), *_empty([REPEATS, PARTS, *FLAGS]), (distance.sum(), n)]
    sums += [(between.sum(), len(between)), (inside.sum(), len(inside)), *_empty([FIT, *LOOKS])]
    scores = {"distance": distance[counted], "diversity": between, "diversity within prompts": inside}
    return EvaluationPart(
        n,
        np.concatenate([shares, np.array(_empty([REPEATS, PARTS, *FLAGS]), np.int64)]).astype(np.int64),
        (*(scores.get(name, np.empty(0)) for name in SCORES), *(np.empty(0) for _ in LOOKS)),
        np.array(sums, np.float64),
        basis.phi(rows).double().sum(0).cpu().numpy(),
        basis.trace(rows[:TRACED]),
        counted[:TRACED],
    )


def with_repeats(
    part: EvaluationPart, basis: Basis, seen: SeenRepeats, rng: np.random.Generator, *, is_new: bool = True
) -> tuple[EvaluationPart, SeenRepeats, dict[int, float]]:
    """Count the repeats of an evaluation and its copies that are left out, and add its samples to all seen.

    Args:
        part: the evaluation, of all processes.
        basis: what is held fixed.
        seen: samples so far.
        rng: draws random parts of all samples.
        is_new: whether its samples are of new seeds; else they say nothing, and are not added.

    Returns:
        The evaluation with its repeats, all samples so far, and the score of the repeats by their place.
    """
    place, own = len(basis.nodes) + SHARES.index(REPEATS), part.traces[part.counted]
    both, shares, sums = seen.with_evaluation(own), part.shares.copy(), part.sums.copy()
    again = both.count_last(len(own))
    shares[place] = sums[place] = again, len(own)
    for counts in (shares, sums):
        counts[len(basis.nodes) + SHARES.index(COPIED)] += part.known  # of as many
    part = replace(part, shares=shares, sums=sums)
    if not (is_new or again > MOSTLY * len(own)):  # a generator that has collapsed makes old samples of new seeds
        return replace(part, asked=AskedSamples()), seen, {place: float("nan")}
    return part, both, {place: both.score_last(len(own), rng)}


def with_own_repeats(part: EvaluationPart, basis: Basis, traces: Array) -> tuple[EvaluationPart, SeenRepeats]:
    """Count the repeats of a reference, by traces of the samples that nothing is fitted to, and begin with them."""
    own = replace(part, traces=traces, counted=np.ones(len(traces), bool))
    none = SeenRepeats.of(np.empty((0, TRACES)), basis.repeat)
    whole, seen, _ = with_repeats(own, basis, none, np.random.default_rng(0))
    return whole, seen


def _with_fit(part: EvaluationPart, fit: Array, counted: NDArray[np.bool_]) -> EvaluationPart:
    """Add the fit of each sample to its prompt, shape (n,), or (0,) if it is not known."""
    if not len(fit):
        return part
    place, sums = SCORES.index(FIT), part.sums.copy()
    sums[len(part.shares) + place] = fit.sum(), len(fit)
    scores = (*part.scores[:place], fit[counted], *part.scores[place + 1 :])
    return replace(part, sums=sums, scores=scores)


def _empty(names: Sequence[object]) -> list[tuple[int, int]]:
    return [(0, 0)] * len(names)


def _mean_distances(rows: torch.Tensor, size: int) -> Array:
    """Return the mean distance in disjoint units of consecutive rows; the rest is left out."""
    whole = rows[: len(rows) // size * size].double().reshape(-1, size, rows.shape[1])
    one, other = np.triu_indices(size, 1)
    found: Array = _exact(whole, whole)[:, one, other].reshape(-1, len(one)).numpy().sum(1) / len(one)
    return found


def _exact(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return distances of rows that may be equal, which a matrix product would round."""
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


def _within(rows: torch.Tensor, prompts: Groups) -> Array:
    """Return the mean distance of the samples of each prompt that has several."""
    if prompts is None:
        return np.empty(0)
    several = [np.flatnonzero(prompts == one) for one in np.unique(prompts)]
    found = [torch.pdist(rows[torch.from_numpy(own)].double()).mean() for own in several if len(own) > 1]
    return np.array([float(one) for one in found])


def _look_at(
    embeddings: Embeddings, rows: Indices, marked: NDArray[np.bool_], basis: Basis, run: Run
) -> tuple[Array | None, dict[str, Thumbnail]]:
    """Return the traits of the pictures of some samples, None without pictures, and a thumbnail of each kind.

    `marked` says among which samples marks are looked for, shape (n,); the trait of all others is NaN.
    """
    parts: list[Array] = []
    residuals: list[NDArray[np.int8]] = []
    found: dict[str, Thumbnail] = {}
    for start in range(0, len(rows), PICTURES):
        some = rows[start : start + PICTURES]
        images = embeddings.images_at(some)
        if images is None:
            return None, {}
        own, apart = measure_looks(images)
        own[:, PLACES["saturation"]] = saturation_of(images)
        parts.append(own)
        residuals.append(apart)
        if len(found) < len(basis.nodes):
            leaf, _ = basis.tree.assign(embeddings.rows_at(some), run)
            for name, inside in zip(basis.names, basis.members[:, leaf], strict=True):
                if inside.any() and name not in found:
                    found[name] = thumbnail(np.asarray(images[int(inside.argmax())].convert("RGB")), EDGE)
    values = np.concatenate(parts)
    values[:, PLACES[MARK]] = _marks(np.concatenate(residuals), marked)
    return values, found


def _marks(residuals: NDArray[np.int8], chosen: NDArray[np.bool_]) -> Array:
    """Return how far each chosen sample shares pixels with its random unit, and NaN of others, shape (n,)."""
    units = np.random.default_rng(0).permutation(np.flatnonzero(chosen))
    units = units[: len(units) // TOGETHER * TOGETHER].reshape(-1, TOGETHER)
    found = np.full(len(residuals), np.nan)
    found[units] = shared_marks(residuals[units])[:, None]
    return found


def _with_looks(part: EvaluationPart, values: Array, rows: Indices, counted: NDArray[np.bool_]) -> EvaluationPart:
    """Add the looks of the pictures of some samples, from their traits."""
    own = counted[rows]
    flags, looks = _split_traits(values)
    shares, sums = part.shares.copy(), part.sums.copy()
    first = part.shares.shape[0] - len(FLAGS)
    shares[first:] = np.column_stack([flags[:, own].sum(1), np.full(len(FLAGS), own.sum())])
    sums[first : first + len(FLAGS)] = np.column_stack([flags.sum(1), np.full(len(FLAGS), len(rows))])
    units = {MARK: np.sort(values[~np.isnan(values[:, PLACES[MARK]]), PLACES[MARK]])[::TOGETHER]}  # each has one value
    shown = [units.get(look.name, one) for look, one in zip(LOOKS, looks, strict=True)]
    sums[-len(LOOKS) :] = [(one.sum(), len(one)) for one in shown]
    of_looks = [units.get(look.name, one[own]) for look, one in zip(LOOKS, looks, strict=True)]
    scores = (*part.scores[: len(SCORES)], *of_looks)
    return replace(part, shares=shares, scores=scores, sums=sums)


def _split_traits(values: Array) -> tuple[NDArray[np.bool_], Array]:
    """Return which samples have each flag, (flags, n), and the values of each other look, (looks, n)."""
    flags = [values[:, PLACES[one.name]] >= (one.least or 0) for one in FLAGS]
    return np.array(flags), np.array([values[:, PLACES[one.name]] for one in LOOKS])


def _with_members(
    part: EvaluationPart,
    embeddings: Embeddings,
    rows: Indices,
    values: Array | None,
    fits: Array | None,
    basis: Basis,
    middles: Array,
    found: NDArray[np.bool_],
    run: Run,
) -> EvaluationPart:
    """Add what two things share among some samples, and ids and words of samples that show each thing."""
    own = embeddings.rows_at(rows).cpu()
    leaf, _ = basis.tree.assign(own, run)
    distance = basis.distances(own, run)
    repeats = Repeats.of_rows({ALL: own}, None, basis.repeat)
    new = _with_likes(found[0], own, distance, run)
    flags, looks = (None, None) if values is None else _split_traits(values)
    none = np.zeros(len(rows), bool)
    near = basis.originals.are_near(own)
    shares = [
        *basis.members[:, leaf],
        new,
        near,
        repeats.is_again(ALL),
        found[1],
        *([none] * len(FLAGS) if flags is None else flags),
    ]
    known = {"distance": distance, FIT: fits} | dict(
        zip(map(_name, LOOKS), looks if looks is not None else (), strict=False)
    )
    scores = [known.get(name) for name in (*SCORES, *map(_name, LOOKS))]
    beyond = [none if one is None else one > middle for one, middle in zip(scores, middles, strict=True)]
    names = [*basis.names, *SHARES, *map(_name, FLAGS)]
    ids: dict[str, Ends] = {
        name: ((), _ids(embeddings, rows[has])) for name, has in zip(names, shares, strict=True) if has.any()
    }
    for name, score in known.items():
        if score is not None and len(score):
            order = rows[np.argsort(score, kind="stable")[: np.count_nonzero(~np.isnan(score))]]
            ids[name] = _ids(embeddings, order), _ids(embeddings, order[::-1])
    words = words_of_found(embeddings, rows, new, 1 - FAR + TAIL, repeats, ALL, are_pictures=values is not None)
    shown = replace(part.shown, ids=ids, words=words)
    return replace(part, shared=count_shared(np.array([*shares, *beyond])), shown=shown)


def _name(trait: Trait) -> str:
    return trait.name


def _ids(embeddings: Embeddings, rows: Indices) -> tuple[str, ...]:
    return embeddings.ids_at(rows[:SHOWN])


def _with_likes(new: NDArray[np.bool_], rows: torch.Tensor, distance: Array, run: Run) -> NDArray[np.bool_]:
    """Mark samples of new kinds, and those that are nearer to such a sample than to any of the reference."""
    if not new.any():
        return new
    near = nearest(rows, rows[torch.from_numpy(np.flatnonzero(new))], 1, device=run.torch_device).distances[:, 0]
    return np.asarray(new | (near < distance))


def nothing(basis: Basis) -> EvaluationPart:
    """Return the part of a process whose samples are all left out."""
    shares = len(basis.nodes) + len(SHARES) + len(FLAGS)
    scores = len(SCORES) + len(LOOKS)
    none = np.empty(0)
    return EvaluationPart(
        0,
        np.zeros((shares, 2), np.int64),
        (none,) * scores,
        np.zeros((shares + scores, 2)),
        np.zeros(basis.phi.size),
        np.empty((0, TRACES)),
        np.empty(0, bool),
    )


def without_fitted(part: EvaluationPart, basis: Basis) -> EvaluationPart:
    """Return what a part of fitted samples says about what is not fitted: copies, flags, diversity and looks."""
    fitted = len(basis.nodes) + len(SHARES)
    first, copied = fitted + len(FLAGS), len(basis.nodes) + SHARES.index(COPIED)
    shares, sums = part.shares.copy(), part.sums.copy()
    own = np.delete(np.arange(fitted), copied)
    shares[own] = sums[own] = 0
    sums[first] = 0
    return replace(part, shares=shares, sums=sums, scores=(np.empty(0), *part.scores[1:]))


def without_copied(part: EvaluationPart, basis: Basis) -> EvaluationPart:
    """Return a part of the reference without its copies: its samples are originals, or may be of the training set."""
    place, shares, sums = len(basis.nodes) + SHARES.index(COPIED), part.shares.copy(), part.sums.copy()
    shares[place] = sums[place] = 0
    return replace(part, shares=shares, sums=sums)


def middles_of(fitted: EvaluationPart, basis: Basis) -> Array:
    """Return the median of each score in the fitted samples, NaN where they say nothing."""
    found = np.array([np.median(one) if len(one) else np.nan for one in fitted.scores])
    found[0] = basis.repeat / REPEAT
    return found


def without_aligned(part: EvaluationPart, middles: Array) -> tuple[EvaluationPart, Array]:
    """Return a reference, and the medians of its scores, without marks where its pictures are aligned, such as digits.

    Their content is at the same places: a lost digit would be a mark.
    """
    shared = part.scores[PLACE_OF_MARK]
    if len(shared) and shared.mean() <= shared.std():
        return part, middles
    scores, sums, known = [*part.scores], part.sums.copy(), middles.copy()
    scores[PLACE_OF_MARK], known[PLACE_OF_MARK] = np.empty(0), np.nan
    sums[len(part.shares) + PLACE_OF_MARK] = 0
    return replace(part, scores=tuple(scores), sums=sums), known
