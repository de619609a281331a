"""The sets of a comparison: whatever the caller has of each, opened, checked and sketched with one feature map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from finc_eval.comparison.directions import FoldedMoments
from finc_eval.comparison.settings import Settings
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.progress import Stage
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.needs import Check, Known, needs_groups, needs_same_space, needs_samples
from finc_eval.embeddings.opened import OpenedSet, Sets
from finc_eval.embeddings.opening import OF_EMBEDDINGS, form_of, open_embedded, open_sets
from finc_eval.embeddings.repeats import few_groups, too_few_groups
from finc_eval.embeddings.same_names import ID, names_of
from finc_eval.embeddings.search.near_repeats import near_repeat_warnings
from finc_eval.embeddings.set_info import SetInfo, set_info
from finc_eval.extractors.settings import AnyExtractor, extraction_of
from finc_eval.feature_maps.approximation import KernelError, approximation_error
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.naming.measured import MeasuredSets, measure_sets
from finc_eval.numerics.arrays import fold_of, rows_of
from finc_eval.numerics.design_effects import MIN_INDEPENDENT
from finc_eval.partitions.blocks import Pairing, needs_pairs, pair
from finc_eval.partitions.counts import DRAWN, MIN_SAMPLES
from finc_eval.partitions.sample_map import DrawnSamples
from finc_eval.partitions.values import needs_values
from finc_eval.prompts.text import Joint, card_of_text, join_text, needs_text
from finc_eval.same_ids.detect import FOUND, are_two_runs, extractor_of_few, few_of_run, least_of_run
from finc_eval.sketches.one_law import KeptSample, Separability, separate
from finc_eval.sketches.opening import SetInput, group_sets, open_sketch, view_rows
from finc_eval.sketches.reference import ERROR_SAMPLE, reference_feature_map
from finc_eval.sketches.sketch import Sketch, sketch_all

if TYPE_CHECKING:
    from numpy.typing import NDArray


SKETCH = Stage("sketch", cost=4.4)

FEATURES_OF_FEW = 64  # frequencies of the feature map of few pairs, which decides nothing: 4 kB


@dataclass(frozen=True, eq=False)
class SketchedSet(OpenedSet[SetInput]):
    """A set of a comparison: as it was opened, and its sketch."""

    sketch: Sketch = field(kw_only=True)

    @cached_property
    def sample(self) -> tuple[torch.Tensor, torch.Tensor]:
        """φ of the bottom-k sample, shape (m, q), on its device, and the fold of each row, shape (m,), on the CPU."""
        kept = self.sketch.sample
        return self.sketch.feature_map(kept.rows), torch.from_numpy(fold_of(kept.keys))

    @cached_property
    def moments(self) -> FoldedMoments:
        """Moments of both folds, with φ of all samples where the bottom-k sample is the whole set."""
        if len(self.sketch.sample.keys) != self.sketch.n:
            return FoldedMoments(self.sketch.folds)
        features, folds = self.sample
        first, second = (features[rows_of(folds, fold).to(features.device)] for fold in (0, 1))
        return FoldedMoments(self.sketch.folds, (first, second))

    @property
    def is_testable(self) -> bool:
        """True if the set has enough independent samples for tests to hold."""
        return self.sketch.n >= MIN_INDEPENDENT * self.sketch.samples_per_group

    @cached_property
    def has_rows(self) -> bool:
        """True unless it is a sketch that kept fewer samples than a set needs, or not which groups they are of."""
        held = self.embeddings or self.sketch.held(self.label)
        return held is not None and held.n >= MIN_SAMPLES

    @cached_property
    def at_hand(self) -> Embeddings:
        """The embeddings, without vectors of prompts, or the sample that the sketch kept; only if it `has_rows`."""
        return self.held.source if isinstance(self.held, Joint) else super().at_hand

    @property
    def kept(self) -> DrawnSamples:
        """The bottom-k sample, without vectors of prompts."""
        sample = self.sketch.sample
        if isinstance(self.embeddings, Joint):
            return DrawnSamples(sample.ids, self.at_hand.rows_at(self._indices))
        return DrawnSamples(sample.ids, sample.rows)

    @property
    def cache(self) -> EmbeddingCache | None:
        """Cache of the embeddings, if they come from one."""
        images = self.embeddings and self.at_hand
        return images.cache if isinstance(images, CachedEmbeddings) else None

    def typical(self, direction: torch.Tensor, count: int = 5) -> list[str]:
        """Return the ids of the samples furthest along a direction, best first.

        Only the bottom-k sample is searched, so that embeddings and their sketch alone give the same ids.
        """
        scores = self.sample[0] @ direction
        return [self.sketch.sample.ids[row] for row in scores.topk(min(count, len(scores))).indices.tolist()]

    def drawn(self, members: torch.Tensor) -> NDArray[np.int64]:
        """Return indices of members drawn at random: the first of the bottom-k sample, which is in order of hash."""
        if not self.has_rows:
            return np.empty(0, np.int64)
        rows = members.nonzero().flatten()[:DRAWN].cpu().numpy()
        return rows if self.embeddings is None else self._indices[rows]

    @cached_property
    def _indices(self) -> NDArray[np.int64]:
        """Indices of the bottom-k sample among the embeddings, shape (m,)."""
        keys = self.at_hand.id_keys()
        order = keys.argsort(kind="stable")
        return np.asarray(order[np.searchsorted(keys, self.sketch.sample.keys, sorter=order)])

    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        """Return the ids of the samples with these indices, as a score pass numbers them."""
        if self.embeddings is None:
            return tuple(self.sketch.sample.ids[index] for index in indices)
        return self.embeddings.ids_at(indices)

    def info(self) -> SetInfo:
        """Describe the set for a report."""
        name = self.sketch.name or self.label
        return set_info(name, self.embeddings and self.at_hand, self.sketch.n, "+".join(self.sketch.sources))


@dataclass(frozen=True)
class SketchedSets:
    """The sets of a comparison, all with one feature map."""

    sets: dict[str, SketchedSet]
    settings: Settings  # settings with the feature map's own bandwidth, seed, number and kind of frequencies in place
    sigma_rule: str  # origin of the bandwidth
    warnings: tuple[str, ...] = ()
    pairing: Pairing | None = None
    # card whose text tower embeds prompts, or a file of their vectors; None: of the extractor behind the sets
    tower: str | None = None
    again: Mapping[str, Embeddings] = field(default_factory=dict)  # further runs of the baseline, by label
    run: Run | None = None  # run on whose device pictures are also embedded upside down; None: they are not

    @property
    def are_few(self) -> bool:
        """True for pairs by id that are fewer than a comparison of sets needs."""
        return _are_few(self.pairing)

    @property
    def blocks(self) -> Mapping[str, NDArray[np.int64]] | None:
        """Block of each sample of paired sets, by label; None without pairs."""
        return None if self.pairing is None else self.pairing.block

    @cached_property
    def kernel_error(self) -> tuple[torch.Tensor, KernelError | None]:
        """Samples of both sets, and the error of φ on them; None for fewer than two samples."""
        phi = self.sets["gen"].sketch.feature_map
        sample = torch.cat([one.sketch.sample.rows[: ERROR_SAMPLE // 2] for one in self.sets.values()])
        return sample, approximation_error(phi, sample) if len(sample) > 1 else None

    @cached_property
    def separability(self) -> Separability | None:
        """Accuracy of a classifier of the samples that the sketches kept; None for too few."""
        sketches = [one.sketch for one in self.sets.values()]
        return separate(*(KeptSample(sketch.sample, sketch.samples_per_group) for sketch in sketches))

    @cached_property
    def measured(self) -> MeasuredSets:
        """Looks of the samples of both sets, which several methods compare."""
        return measure_sets({label: one.at_hand for label, one in self.sets.items()}, run=self.run)


def sketch_sets(
    sources: Mapping[str, object],
    settings: Settings,
    run: Run,
    extractor: AnyExtractor = None,
    again: Sequence[object] = (),
) -> SketchedSets:
    """Open, pair, check and sketch the sets of a comparison, "gen" and "ref"; ref decides bandwidth and center.

    `again` has further runs of the baseline, of sets that are paired by their ids.

    A source is an array, a tensor, an `EmbeddingCache`, a `Sketch`, or the path of a file or of samples.
    """
    of_few = partial(extractor_of_few, sources) if settings.pairs == ID and extractor is None else None
    opened, warnings = open_inputs(sources, settings, run, extractor, again, of_few)
    inputs = opened.chosen(sources)
    pairing, sentences, settings = _pair_up(inputs, settings)
    if pairing is not None:
        inputs = inputs.with_rows(pairing.sets)
    near = near_repeat_warnings(view_rows(inputs.held), run)
    if is_few := _are_few(pairing):  # what they show needs no feature map, but a result has one
        features = FEATURES_OF_FEW if settings.features == "auto" else settings.features
        settings = replace(settings, sigma=settings.sigma or 1.0, features=features)
    for label, held in inputs.held.items():
        if held.n < MIN_SAMPLES and not is_few:
            raise _too_few(label, held.n)
    if settings.text is not None:
        rows = inputs.embeddings
        column = settings.pairs if all(settings.pairs in one.columns for one in rows.values()) else None
        joint, sigma, unread = join_text(rows, ["ref"], settings.text, column, settings.sigma)
        inputs, settings = inputs.with_rows(joint), replace(settings, sigma=sigma)
        sentences += [unread] if unread else []
    phi, sigma_rule = _common_feature_map(inputs.held, settings, run)
    runs = run.over(SKETCH, [0 if isinstance(held, Sketch) else held.n for held in inputs.held.values()])
    sets = {
        label: _sketch(given_set, phi, settings, each, is_few=is_few)
        for (label, given_set), each in zip(inputs.items(), runs, strict=True)
    }
    sketches = [(label, one.sketch) for label, one in sets.items()]
    few = [few_groups(label, one.n, one.samples_per_group, one.groups) for label, one in sketches]
    notes = (*warnings, *near, *sentences, *chain(*few))
    # The card of the text, or else of the samples, whose text tower is to embed prompts.
    own_tower = settings.text is not None and card_of_text(settings.text) is not None
    tower = settings.text if own_tower else extraction_of(extractor).extractor
    runs_again = opened.chosen(label for label in opened if label not in sources).at_hand
    return SketchedSets(sets, _with_map(settings, phi), sigma_rule, notes, pairing, tower, runs_again, run)


def open_inputs(
    sources: Mapping[str, object],
    settings: Settings,
    run: Run,
    extractor: AnyExtractor = None,
    again: Sequence[object] = (),
    preferred: Callable[[], str | None] | None = None,
) -> tuple[Sets[SetInput], tuple[str, ...]]:
    """Open what the caller has of each set, by label, grouped; return sentences on groups and exact repeats.

    Further runs of the baseline are called "again 1" and so on. `preferred` is the extractor if none is named.
    """
    check_again(again, settings)
    runs = {f"again {number}": one for number, one in enumerate(again, 1)}

    def open_sketched(source: object, label: str) -> OpenedSet[SetInput]:
        if label in runs:  # it says that a sketch has no pairs
            return open_embedded(source, label)
        refuse_sketch(label, settings)
        return OpenedSet(label, open_sketch(source, run.torch_device))

    openers = {**OF_EMBEDDINGS, "sketch": open_sketched}
    checks = needs_of(settings, [*sources])
    opened = open_sets({**sources, **runs}, openers, extractor, run, preferred=preferred, checks=checks)
    grouped, sentences = group_sets(opened.chosen(sources).held, settings.groups, run)
    return opened.with_rows(grouped), tuple(sentences)


def needs_of(settings: Settings, labels: Sequence[str] = ("gen", "ref")) -> list[Check]:
    """Return the checks that a comparison makes of the sets with these labels before its work, by its settings."""

    def of_these(check: Check) -> Check:
        return lambda sets: check({label: one for label, one in sets.items() if label in labels})

    asked = (
        needs_same_space,
        needs_values(settings.by),
        needs_groups(settings.groups, len(labels)),
        needs_pairs(settings.pairs),
        needs_text(settings.text, settings.pairs),
        needs_samples(1 if settings.pairs == ID else MIN_SAMPLES, _too_few),
    )

    def of_runs(sets: Mapping[str, Known]) -> None:
        runs = [label for label in sets if label not in labels and "ref" in sets]
        least = least_of_run(_shared_ids(sets, labels)) if runs and {*labels} <= sets.keys() else 1
        for label in runs:
            if (shared := _shared_ids(sets, ("ref", label))) < least:
                raise few_of_run(label, shared, least)

    return [*map(of_these, asked), of_runs]


def _shared_ids(sets: Mapping[str, Known], labels: Sequence[str]) -> int:
    """Return how many ids the sets with these labels have in common."""
    names, _ = names_of({label: sets[label] for label in labels}, ID)
    return len(reduce(np.intersect1d, names.values()))


def refuse_sketch(label: str, settings: Settings) -> None:
    """Raise UsageError for a sketch where settings ask for what it does not keep."""
    if settings.pairs is not None:
        raise UsageError(
            f"{label} is a sketch, which does not keep the column {settings.pairs!r} that pairs asks for: pass its "
            "embeddings, or leave pairs out"
        )
    if settings.text is not None:
        raise UsageError(f"{label} is a sketch, which has no prompts, and text asks for them: pass its embeddings")


def refuse_sketches(sources: Mapping[str, object], settings: Settings) -> None:
    """Raise UsageError for sketches among sets where settings ask for what these do not keep."""
    for label, source in sources.items():
        if form_of(source) == "sketch":
            refuse_sketch(label, settings)


def check_again(again: Sequence[object], settings: Settings) -> None:
    """Raise UsageError unless further runs are a list, and the sets are paired by their ids."""
    if isinstance(again, str) or not isinstance(again, Sequence):
        raise UsageError(f"again must be a list of sets, got {type(again).__name__}: pass again=[…]")
    if len(again) and settings.pairs != ID:
        raise UsageError(
            'again has runs with the same ids as ref, and the sets are not paired by them: pass pairs="id"'
        )


def _pair_up(inputs: Sets[SetInput], settings: Settings) -> tuple[Pairing | None, list[str], Settings]:
    """Pair sets as the settings ask; unasked, two runs with the same ids are paired by these. Sketches are not."""
    embeddings = inputs.embeddings
    if len(embeddings) < len(inputs):
        return None, [], settings
    is_free = settings.pairs is None and settings.groups is None and settings.rho == 1
    is_found = is_free and are_two_runs(embeddings)
    settings = replace(settings, pairs=ID) if is_found else settings
    pairing, sentences = pair(embeddings, settings.pairs, settings.groups if settings.rho == 1 else None)
    return pairing, [*[FOUND] * is_found, *sentences], settings


def _with_map(settings: Settings, phi: FeatureMap) -> Settings:
    """Return the settings with the settings of a feature map."""
    return replace(
        settings,
        kernel=phi.kernel,
        sigma=phi.sigma,
        features=phi.features,
        frequencies="orthogonal" if phi.orthogonal else "iid",
        seed=phi.seed,
    )


def _common_feature_map(inputs: Mapping[str, SetInput], settings: Settings, run: Run) -> tuple[FeatureMap, str]:
    """Return the feature map of the first sketch, or else of the reference, and the origin of its bandwidth."""
    sketches = [one for one in (inputs["ref"], inputs["gen"]) if isinstance(one, Sketch)]
    if not sketches:
        return reference_feature_map([cast(Embeddings, inputs["ref"])], settings, run.torch_device)
    phi = sketches[0].feature_map
    made = _with_map(settings, phi)
    for name in ("kernel", "sigma", *(() if phi.kernel == "cosine" else ("features", "frequencies", "seed"))):
        asked, stored = getattr(settings, name), getattr(made, name)
        if asked not in (getattr(Settings, name), stored):
            raise UsageError(
                f"{name} {asked} was asked for, but the sketch was made with {stored}: leave {name} out, or make the "
                "sketch again"
            )
    for sketch in sketches[1:]:
        sketches[0].check_comparable(sketch)
    return phi, "of the sketch"


def _are_few(pairing: Pairing | None) -> bool:
    by_id = pairing is not None and pairing.info.column == ID
    return by_id and min(one.n for one in pairing.sets.values()) < MIN_SAMPLES  # type: ignore[union-attr]  # it is one


def _sketch(
    opened: OpenedSet[SetInput], phi: FeatureMap, settings: Settings, run: Run, *, is_few: bool = False
) -> SketchedSet:
    """Sketch a set unless it is a sketch, and check that it can be split in two halves."""
    label = opened.label
    if isinstance(opened.held, Sketch):
        sketch = opened.held
    else:
        (sketch,) = sketch_all(opened.held, [phi], precision=settings.precision, is_kept=False, run=run)
    if min(fold.n for fold in sketch.folds) < 2 and not is_few:
        if sketch.groups is not None:
            raise too_few_groups(label, sketch.n, sketch.samples_per_group, sketch.groups)
        raise _too_few(label, sketch.n)
    if not all(fold.first.isfinite().all() for fold in sketch.folds):
        raise DataError(f"the features of {label} overflow: its embeddings are too large for float32, scale them")
    return SketchedSet(label, opened.held, opened.stand_in, opened.given, opened.form, sketch=sketch)


def _too_few(label: str, n: int) -> DataError:
    return DataError(
        f"{label} has {plural(n, 'sample')}: a comparison needs at least {MIN_SAMPLES} of each set, and hundreds "
        "to say anything with confidence"
    )
