"""Measurements of the samples of an evaluation, against what a monitor holds fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from finc_eval.core.errors import UsageError
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.gallery.thumbnails import Thumbnail, thumbnail
from finc_eval.monitoring.basis import FAR, REPEAT, TRACES, Basis
from finc_eval.monitoring.causes import count_shared
from finc_eval.monitoring.evaluations import TRACED, EvaluationPart, join_parts
from finc_eval.monitoring.exchange import Array, Counts
from finc_eval.monitoring.followed import FIT, FLAGS, LOOKS, NEW_KINDS, REPEATS, SCORES, SHARES
from finc_eval.monitoring.naming import say_repeats, words_for
from finc_eval.monitoring.shown import SHOWN, Ends, ShownSamples
from finc_eval.naming.measured import looked_rows
from finc_eval.naming.properties import TEXT_COLUMNS
from finc_eval.naming.traits import SIDE, TRAITS, Trait, measure_looks

TOGETHER = 4  # samples of a unit of diversity: the mean of their six distances
REPEATED = 8  # samples of a unit of repeats: of an evaluation of 64, eight units
PICTURES = 64  # pictures in memory
ORDER = 8
"""Order of the mean of the saturation over the pixels of a picture: vivid parts weigh more. Of photographs whose color
is enhanced by 19 %, the mean rank moves by .24 standard deviations with the order 1, by .28 with 4 and by .30 with 8;
of those whose saturation grows by 19 %, by .27, .34 and .38. A scaled saturation scales this mean."""

DIM = 0.2  # brightest channel below which saturation is relative to this: dark pixels are else as saturated as paint
EDGE = 48  # pixels of the longer edge of a thumbnail: seven of them are 336 wide

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
) -> EvaluationPart:
    """Measure the samples of an evaluation.

    Args:
        embeddings: the samples.
        basis: what is held fixed.
        rng: draws the units of diversity and repeats, and the samples of `alone`.
        prompts: number of the prompt of each sample, for the diversity within prompts.
        alone: number of the group of each sample: in the tests, one sample of a group counts; None: all count.
        fits: fit of each sample to its prompt; None if it is not known.
        run: device and portions.
        middles: medians of the scores in the reference; None where it is not asked which samples have what.
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
    values, pictures = _look_at(embeddings, looked, basis, run)
    if values is not None:
        whole = _with_looks(whole, values, looked, counted)
    if middles is None:
        return whole
    known = None if fits is None else fits[looked]
    return _with_members(
        replace(whole, shown=ShownSamples(pictures)), embeddings, looked, values, known, basis, middles, run
    )


def one_of_each(groups: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Mark one sample of each group, at random."""
    order = rng.permutation(len(groups))
    chosen = order[np.unique(groups[order], return_index=True)[1]]
    return np.isin(np.arange(len(groups)), chosen)


def _of_rows(
    rows: torch.Tensor, basis: Basis, rng: np.random.Generator, counted: NDArray[np.bool_], prompts: Groups, run: Run
) -> EvaluationPart:
    """Measure embeddings, shape (b, d)."""
    n = len(rows)
    leaf, _ = basis.tree.assign(rows, run)
    distance = basis.distances(rows, run)
    has = np.concatenate([basis.members[:, leaf], [distance > basis.far]])
    units = rows[torch.from_numpy(rng.permutation(np.flatnonzero(counted)))]
    closest, _ = _distances(units, REPEATED)
    repeats = closest <= basis.repeat
    shares = np.concatenate(
        [np.column_stack([has[:, counted].sum(1), np.full(len(has), counted.sum())]), [[repeats.sum(), len(repeats)]]]
    )
    _, between = _distances(units, TOGETHER)
    inside = _within(rows, prompts)
    again = _repeated(rows, basis.repeat, run)
    sums = [*((one.sum(), n) for one in has), (again, n), *_empty(FLAGS), (distance.sum(), n)]
    sums += [(between.sum(), len(between)), (inside.sum(), len(inside)), *_empty([FIT, *LOOKS])]
    scores = {"distance": distance[counted], "diversity": between, "diversity within prompts": inside}
    return EvaluationPart(
        n,
        np.concatenate([shares, np.array(_empty(FLAGS), np.int64).reshape(-1, 2)]).astype(np.int64),
        (*(scores.get(name, np.empty(0)) for name in SCORES), *(np.empty(0) for _ in LOOKS)),
        np.array(sums, np.float64),
        basis.phi(rows).double().sum(0).cpu().numpy(),
        basis.trace(rows[:TRACED]),
    )


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


def _distances(rows: torch.Tensor, size: int) -> tuple[Array, Array]:
    """Return the smallest and the mean distance in disjoint units of consecutive rows; the rest is left out."""
    whole = rows[: len(rows) // size * size].double().reshape(-1, size, rows.shape[1])
    one, other = np.triu_indices(size, 1)
    found = _exact(whole, whole)[:, one, other].reshape(-1, len(one)).numpy()
    return found.min(1, initial=np.inf), found.sum(1) / len(one)


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


def _repeated(rows: torch.Tensor, within: float, run: Run) -> int:
    """Return how many rows have another row within a distance."""
    if len(rows) < 2:
        return 0
    own = nearest(rows, rows, 1, exclude_self=True, device=run.torch_device).distances[:, 0]
    return int((own <= within).sum())


def _look_at(
    embeddings: Embeddings, rows: Indices, basis: Basis, run: Run
) -> tuple[Array | None, dict[str, Thumbnail]]:
    """Return the traits of the pictures of some samples, None without pictures, and a thumbnail of each kind."""
    parts: list[Array] = []
    found: dict[str, Thumbnail] = {}
    for start in range(0, len(rows), PICTURES):
        some = rows[start : start + PICTURES]
        images = embeddings.images_at(some)
        if images is None:
            return None, {}
        parts.append(looks_of(images))
        if len(found) < len(basis.nodes):
            leaf, _ = basis.tree.assign(embeddings.rows_at(some), run)
            for name, inside in zip(basis.names, basis.members[:, leaf], strict=True):
                if inside.any() and name not in found:
                    found[name] = thumbnail(np.asarray(images[int(inside.argmax())].convert("RGB")), EDGE)
    return np.concatenate(parts), found


def _with_looks(part: EvaluationPart, values: Array, rows: Indices, counted: NDArray[np.bool_]) -> EvaluationPart:
    """Add the looks of the pictures of some samples, from their traits."""
    own = counted[rows]
    flags, looks = _split_traits(values)
    shares, sums = part.shares.copy(), part.sums.copy()
    first = part.shares.shape[0] - len(FLAGS)
    shares[first:] = np.column_stack([flags[:, own].sum(1), np.full(len(FLAGS), own.sum())])
    sums[first : first + len(FLAGS)] = np.column_stack([flags.sum(1), np.full(len(FLAGS), len(rows))])
    sums[-len(LOOKS) :] = [(one.sum(), len(rows)) for one in looks]
    scores = (*part.scores[: len(SCORES)], *(one[own] for one in looks))
    return replace(part, shares=shares, scores=scores, sums=sums)


def _split_traits(values: Array) -> tuple[NDArray[np.bool_], Array]:
    """Return which samples have each flag, (flags, n), and the values of each other look, (looks, n)."""
    places = {trait.name: place for place, trait in enumerate(TRAITS)}
    flags = [values[:, places[one.name]] >= (one.least or 0) for one in FLAGS]
    return np.array(flags), np.array([values[:, places[one.name]] for one in LOOKS])


def _with_members(
    part: EvaluationPart,
    embeddings: Embeddings,
    rows: Indices,
    values: Array | None,
    fits: Array | None,
    basis: Basis,
    middles: Array,
    run: Run,
) -> EvaluationPart:
    """Add what two things share among some samples, and ids and words of samples that show each thing."""
    own = embeddings.rows_at(rows).cpu()
    leaf, _ = basis.tree.assign(own, run)
    distance = basis.distances(own, run)
    groups = _groups(own, basis.repeat, run)
    new = _are_new(own, distance, basis, run)
    flags, looks = (None, None) if values is None else _split_traits(values)
    none = np.zeros(len(rows), bool)
    shares = [*basis.members[:, leaf], new, groups >= 0, *([none] * len(FLAGS) if flags is None else flags)]
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
            order = rows[np.argsort(score, kind="stable")]
            ids[name] = _ids(embeddings, order), _ids(embeddings, order[::-1])
    words = _words(embeddings, rows, new, groups, values is not None)
    shown = replace(part.shown, ids=ids, words=words)
    return replace(part, shared=count_shared(np.array([*shares, *beyond])), shown=shown)


def _name(trait: Trait) -> str:
    return trait.name


def _ids(embeddings: Embeddings, rows: Indices) -> tuple[str, ...]:
    return embeddings.ids_at(rows[:SHOWN])


def _are_new(rows: torch.Tensor, distance: Array, basis: Basis, run: Run) -> NDArray[np.bool_]:
    """Mark samples that are far from all kinds, or nearer to such a sample than to any of the reference."""
    far = distance > basis.far
    if not far.any():
        return far
    near = nearest(rows, rows[torch.from_numpy(np.flatnonzero(far))], 1, device=run.torch_device).distances[:, 0]
    return np.asarray(far | (near < distance))


def _groups(rows: torch.Tensor, within: float, run: Run) -> Indices:
    """Return the number of the repeat of each row, −1 for rows that no other row repeats."""
    found = np.full(len(rows), -1)
    if len(rows) < 2:
        return found
    own = nearest(rows, rows, 1, exclude_self=True, device=run.torch_device).distances[:, 0]
    again = np.flatnonzero(own <= within)
    if len(again):
        some = rows[torch.from_numpy(again)].double()
        _, found[again] = connected_components(csr_array(_exact(some, some).numpy() <= within), directed=False)
    return found


def _words(
    embeddings: Embeddings, rows: Indices, new: NDArray[np.bool_], groups: Indices, has_pictures: bool
) -> dict[str, str]:
    """Return words for samples of new kinds, if there are more than a reference has, and for what repeats most."""
    found = {}
    if new.sum() > max(2, 2 * (1 - FAR) * len(new)):
        found[NEW_KINDS] = words_for(embeddings, [rows[new]])[0]
    counts = np.bincount(groups[groups >= 0])
    if len(counts):
        thing = "picture" if has_pictures else "sample"
        found[REPEATS] = say_repeats(len(counts), int(counts.sum()), thing)
    return found


def looks_of(images: Sequence[Image.Image]) -> Array:
    """Return the traits of pictures, shape (n, traits), in the order of `TRAITS`, with a saturation of vivid parts."""
    found, _ = measure_looks(images)
    found[:, next(place for place, trait in enumerate(TRAITS) if trait.name == "saturation")] = _saturation(images)
    return found


def _saturation(images: Sequence[Image.Image]) -> Array:
    """Return the mean saturation of pictures, of the order 8 over pixels, shape (n,)."""
    small = [np.asarray(one.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)) for one in images]
    pixels = np.stack(small).reshape(len(images), -1, 3) / np.float32(255)
    channels = np.moveaxis(pixels, 2, 0)  # a reduction of so short an axis is slow
    largest, smallest = reduce(np.maximum, channels), reduce(np.minimum, channels)
    found: Array = ((largest - smallest) / np.maximum(largest, DIM)) ** ORDER
    return np.asarray(found.mean(1, dtype=np.float64) ** (1 / ORDER))


def numbers_of(names: Sequence[str]) -> Counts:
    """Return the number of each text among all different ones."""
    return np.asarray(np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)[1], np.int64)


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
    )


def prompts_of(one: Embeddings, prompts: Sequence[str] | None) -> list[str] | None:
    """Return the prompt of each sample, as given or in a column; None without prompts."""
    if prompts is not None:
        if len(prompts) != one.n:
            raise UsageError(
                f"there are {plural(len(prompts), 'prompt')} for {plural(one.n, 'sample')}: give one a sample"
            )
        return [str(prompt) for prompt in prompts]
    column = next((name for name in TEXT_COLUMNS if name in one.columns), None)
    return None if column is None else one.column(column)


def without_fitted(part: EvaluationPart, basis: Basis) -> EvaluationPart:
    """Return what a part of fitted samples says about things that are not fitted: flags, diversity and looks."""
    fitted = len(basis.nodes) + len(SHARES)
    first = fitted + len(FLAGS)
    shares, sums = part.shares.copy(), part.sums.copy()
    shares[:fitted] = sums[:fitted] = 0
    sums[first] = 0
    return replace(part, shares=shares, sums=sums, scores=(np.empty(0), *part.scores[1:]))


def middles_of(fitted: EvaluationPart, basis: Basis) -> Array:
    """Return the median of each score in the fitted samples, NaN where they say nothing."""
    found = np.array([np.median(one) if len(one) else np.nan for one in fitted.scores])
    found[0] = basis.repeat / REPEAT
    return found
