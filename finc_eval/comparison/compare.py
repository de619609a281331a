"""`compare`: from two sets, or their sketches, to the kinds and directions on which they differ.

The steps, in order: open and sketch the sets, divide them into kinds, fit directions, score the sets on these, name
both, describe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack, overload

from finc_eval.comparison.assemble import Members, assemble_directions, name_directions, place_in_kinds
from finc_eval.comparison.caveats import caveats, copies_between
from finc_eval.comparison.direction import ROLES, SETS_OF, Direction, Role
from finc_eval.comparison.directions import CrossFit
from finc_eval.comparison.findings import findings_of, hold_compared, with_kinds
from finc_eval.comparison.fits import baseline_fit, finc_fit, spectrum_of
from finc_eval.comparison.inputs import SKETCH, SketchedSet, SketchedSets, sketch_sets
from finc_eval.comparison.result import Comparison, as_comparison
from finc_eval.comparison.score_pass import SCORE, ScoredSet, score_sets
from finc_eval.comparison.sets_test import sets_p_value, unit_features
from finc_eval.comparison.settings import Clusters, Finc, Options, Settings, settings_of, without_clusters
from finc_eval.comparison.spaces import Spaces, compare_in_spaces
from finc_eval.core.errors import UsageError
from finc_eval.core.progress import Stage
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import show_options
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.core.words import SET_NAMES
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.embedding_set import take_arrays
from finc_eval.embeddings.recipe import known_space
from finc_eval.embeddings.repeats import LOOK
from finc_eval.embeddings.same_names import ID
from finc_eval.embeddings.search.neighbors import index_signature, least_recall, recall_notes
from finc_eval.extractors.settings import AnyExtractor, Spaced
from finc_eval.findings.local import LocalParts, find_parts
from finc_eval.findings.visible import find_visible
from finc_eval.gallery.counts import MAX_SHOWN
from finc_eval.gallery.pictured import captions_of
from finc_eval.naming.explained import Has
from finc_eval.naming.looks import Look, look_at
from finc_eval.naming.measured import MeasuredSets
from finc_eval.numerics.exchanges import MeanLaw
from finc_eval.numerics.inference import ALPHA, BESIDE_ALPHA
from finc_eval.numerics.precision import arithmetic
from finc_eval.partitions.answer import Answer, divide
from finc_eval.partitions.counts import COUNT, KindsOfSamples
from finc_eval.partitions.kind import Kind, kinds_of_rows
from finc_eval.partitions.kind_tree import DIVIDE, KindTree
from finc_eval.partitions.sample_map import map_sets
from finc_eval.partitions.values import SharesBy, shares_by
from finc_eval.prompts.table import prompt_differences

DIRECTIONS = Stage("find directions", cost=2)

SeenLooks = tuple[list[tuple[Look, Has]], MeasuredSets]  # looks with their samples, and what was measured


@overload
def compare(
    gen: object,
    ref: object,
    settings: Settings | None = None,
    *,
    kinds: object = None,
    labels: object = None,
    again: Sequence[object] = (),
    extractor: Spaced,
    run: Run | None = None,
    **options: Unpack[Options],
) -> Spaces: ...


@overload
def compare(  # type: ignore[overload-overlap]
    gen: dict[str, Any],
    ref: dict[str, Any],
    settings: Settings | None = None,
    *,
    labels: object = None,
    run: Run | None = None,
    **options: Unpack[Options],
) -> Spaces: ...


@overload
def compare(
    gen: object,
    ref: object,
    settings: Settings | None = None,
    *,
    kinds: object = None,
    labels: object = None,
    again: Sequence[object] = (),
    extractor: AnyExtractor = None,
    run: Run | None = None,
    **options: Unpack[Options],
) -> Comparison: ...


@show_options(Settings)
@arithmetic()
def compare(
    gen: object,
    ref: object,
    settings: Settings | None = None,
    *,
    kinds: object = None,
    labels: object = None,
    again: Sequence[object] = (),
    extractor: AnyExtractor | Spaced = None,
    run: Run | None = None,
    **options: Unpack[Options],
) -> Comparison | Spaces:
    """Find the kinds of samples and the directions on which two sets differ, with intervals and p-values.

    Kinds do not overlap, and add up: see `kinds`. FINC (arXiv 2405.02700) on random Fourier features adds the leading
    directions of Λ = C_gen − ρ·C_ref, rotated by varimax, with cross-fitted masses, intervals and p-values
    (docs/method.md). Embeddings are streamed in three passes, which sketch a set, count its kinds, and score it; of
    each sample only a few numbers are held, such as hashes of its id.

    The baselines of the paper propose other directions, and all else is the same. They need embeddings of both sets.
    Exact KEN holds the kernel matrix of both, of 20 000 samples in all at most: 8 GB, and a quarter of an hour.

    Several extractors compare the sets in several spaces: which differences concern content, which motion or style?
    Each space has a comparison of its own, and the spaces share α: p-values of kinds are multiplied by the number of
    spaces. Two kinds of unlike spaces count as one kind if most of their samples are in both. Where the spaces
    themselves hold other samples together, SPEC (arXiv 2506.06231) shows it: eigenvectors of the difference of the
    kernel matrices of the same samples in two spaces, centered, from the random features of the bottom-k samples.

    Args:
        gen: generated set: array or tensor of embeddings (n, d), `EmbeddingCache`, `Sketch`, the path of a file of
            embeddings or a sketch, or the path of samples in any form that `extract` takes, which are embedded first;
            or a dict of any of these by the name of their space.
        ref: reference set, in any of the same forms. Two sketches must share their feature map.
        settings: settings of the comparison; default: `Settings()`.
        kinds: an earlier comparison, or its path, whose kinds to count the sets by, so that `compare_releases` finds
            what changed since then; default: the kinds of both sets.
        labels: labels of the samples of both sets, if these are arrays: a pair of arrays, or arrays by "gen" and "ref".
            They name kinds, and their shares are compared (`by`). Also the option `groups` may be such arrays.
        again: further runs of the reference's generator with the same prompts and seeds, in any of the same forms, for
            sets that are paired by their ids (`pairs="id"`): what differs no more than these do has not changed.
        extractor: how to embed sets of samples: a name, the path of a card, or `fe.Extraction`; default: the extractor
            behind the other set, or else EfficientNet-Lite0. A list of several gives a comparison in each space.
        run: device, portions, threads and progress of the computation.
        options: fields of `Settings`, which override `settings`.

    Returns:
        The comparison, or `Spaces` for several extractors and for dicts.

    Raises:
        UsageError: a setting is out of range, or several spaces are not at least two of unlike names.
        DataError: a set has fewer than 20 samples, embeddings that are not finite, or a form that a baseline cannot
            take.
        IncompatibleError: the sets come from unlike extractors, or have unlike dimensions or feature maps; or several
            spaces do not hold the same samples in the same order.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()  # gen has no zeros and too many ones
        >>> comparison = fe.compare(gen, ref, features=500, modes=3)
        >>> sorted({kind.share_gen > kind.share_ref for kind in comparison.significant()})
        [False, True]
        >>> same = fe.compare({"a": gen, "b": gen}, {"a": ref, "b": ref}, features=200)
        >>> sorted({kind.seen_by for kind in same.kinds})
        [('a', 'b'), ('b', 'a')]
    """
    run = Run.of(run)
    if not (isinstance(extractor, list | tuple) or (isinstance(gen, dict) and isinstance(ref, dict))):
        tree = None if kinds is None else as_comparison(kinds, "kinds").tree
        sets, chosen = take_arrays({"gen": gen, "ref": ref}, labels, options)
        settings = settings_of(settings, chosen)
        run = run.planned(*stages_of(settings, tree))
        opened = sketch_sets(sets, settings, run, extractor, again)
        return compare_opened(opened, opened.settings, run, tree)
    if kinds is not None:
        raise UsageError(
            "kinds of an earlier comparison belong to a single space: give one extractor, or leave kinds out"
        )
    if len(again):
        raise UsageError("runs of a baseline are compared in one space: give one extractor, or leave again out")
    several = extractor if isinstance(extractor, list | tuple) else [] if extractor is None else [extractor]
    return compare_in_spaces(gen, ref, several, labels, settings, run, options, compare_opened)


def stages_of(settings: Settings, kinds: KindTree | None = None) -> list[str]:
    """Return the stages of a comparison of embedded sets by its own or given kinds, in their order."""
    counted = [*([] if kinds else [DIVIDE]), COUNT] if settings.has_kinds else []
    directions = [] if isinstance(settings.method, Clusters) else [DIRECTIONS]
    return [LOOK, SKETCH, *counted, *directions, SCORE]


@arithmetic()
def compare_opened(opened: SketchedSets, settings: Settings, run: Run, kinds: KindTree | None = None) -> Comparison:
    """Compare two sets, "gen" and "ref", that are opened and sketched, by their own kinds or given kinds."""
    gen, ref = opened.sets["gen"], opened.sets["ref"]
    if opened.are_few:
        from finc_eval.comparison.few_pairs import compare_few  # measures of pictures, which other sets do not need

        return compare_few(opened, settings, run)
    if not (gen.has_rows and ref.has_rows):
        settings = without_clusters(settings)
    answer = None
    if settings.has_kinds:
        answer = divide(
            {side.label: side.at_hand for side in (gen, ref)},
            kinds=kinds,
            rho=settings.rho,
            part=settings.parts[1],
            seed=settings.seed,
            run=run,
            pairing=opened.pairing,
        )
    fits = _fit(gen, ref, settings, run)
    units = {label: found for label in opened.sets if (found := unit_features(opened, label)) is not None}
    scored = score_sets(opened.sets, list(fits.values()), units, run)
    is_paired = opened.pairing is not None and not opened.pairing.is_whole
    directions = assemble_directions(scored, fits, settings, is_paired=is_paired)
    sums = {label: features.result() for label, features in units.items()}
    tested = None if settings.rho != 1 else sets_p_value(opened, sums, settings.seed)
    law = MeanLaw.of(sums["gen"]) if "gen" in sums and opened.pairing is None else None
    return replace(_describe(opened, settings, fits, answer, scored, directions, run, kinds, tested), law=law)


def _fit(gen: SketchedSet, ref: SketchedSet, settings: Settings, run: Run) -> dict[Role, CrossFit]:
    """Fit the directions on which gen has more, and the directions on which it has less; kinds need none."""
    if isinstance(settings.method, Clusters):
        return {}
    prepare = finc_fit if isinstance(settings.method, Finc) else baseline_fit
    fit = prepare(settings, gen, ref)
    run.progress(DIRECTIONS, 0, 2)
    over = fit(gen, ref)
    run.progress(DIRECTIONS, 1, 2)
    under = fit(ref, gen)
    run.progress(DIRECTIONS, 2, 2)
    return {"over": over, "under": under}


def _describe(
    opened: SketchedSets,
    settings: Settings,
    fits: Mapping[Role, CrossFit],
    answer: Answer | None,
    scored: Mapping[str, ScoredSet],
    found_directions: Sequence[tuple[Direction, Members]],
    run: Run,
    kinds: KindTree | None,
    sets_p: float | None,
) -> Comparison:
    """Gather what a reader must know of the comparison."""
    gen, ref = opened.sets["gen"], opened.sets["ref"]
    sets = {side.label: side.at_hand for side in (gen, ref) if side.has_rows or side.embeddings is not None}
    directions, listed, headings, divided = _name(found_directions, opened, answer, sets, run)
    sample, error = opened.kernel_error
    copies, phi = copies_between(gen, ref), gen.sketch.feature_map
    recall = least_recall(*(fit.full.recall for fit in fits.values()))
    is_testable, seen = gen.is_testable and ref.is_testable, _looks(sets, opened, settings)
    overall = answer.differences(settings.seed)["gen"] if answer else None
    found = Comparison(
        kinds=listed,
        headings=headings,
        over=tuple(direction for direction in directions if direction.role == "over"),
        under=tuple(direction for direction in directions if direction.role == "under"),
        difference=overall.value if overall else None,
        difference_interval=overall.interval if overall else None,
        difference_p_value=overall.p_value if overall else None,
        sets_p_value=sets_p,
        separability=opened.separability if sets_p is not None and sets_p <= BESIDE_ALPHA else None,
        looks=tuple(look for look, _ in seen[0]),
        detectable=answer.choice.tests.detectable(settings.parts[1] * ALPHA) if answer else None,
        gen=gen.info(),
        ref=ref.info(),
        settings=settings,
        sigma_rule=opened.sigma_rule,
        signature=_signature(gen, ref, settings, recall, kinds),
        space=known_space([gen.sketch.space, ref.sketch.space]),
        tested=is_testable * sum(fit.full.vectors.shape[1] for fit in fits.values()),
        kinds_tested=is_testable * answer.kinds.tree.nodes if answer else 0,
        spectrum=spectrum_of(fits),
        kernel_error=error,
        copies=copies,
        by=_values(sets, opened, settings),
        **_of_pairs(opened, answer, listed, divided, settings, run),
        warnings=(*recall_notes(recall), *caveats(opened, settings, scored, sample, error, copies), *opened.warnings),
        feature_map=phi,
        divided=divided,
        map=map_sets(sets, {side.label: side.kept for side in (gen, ref)}, listed, divided, run),
        provenance=Provenance.here(run.device),
    )
    return _with_captions(_with_findings(found, sets, seen, opened, run), opened, run)


def _name(
    found: Sequence[tuple[Direction, Members]],
    opened: SketchedSets,
    answer: Answer | None,
    sets: Mapping[str, Embeddings],
    run: Run,
) -> tuple[list[Direction], tuple[Kind, ...], tuple[Kind, ...], KindsOfSamples | None]:
    """Name the directions and the kinds, and say in which kinds directions lie."""
    directions = name_directions(found, opened.sets["gen"], opened.sets["ref"])
    if answer is None:
        return directions, (), (), None
    listed, headings, divided = answer.described(sets)
    # A kind can explain a direction even if it is too rare to be significant itself.
    alike = dict(zip(ROLES, answer.choice.tests.raw[:, list(answer.choice.listed)] <= ALPHA, strict=True))
    placed = [
        place_in_kinds(each, sets[SETS_OF[each.role][0]], listed, alike[each.role], divided, run) for each in directions
    ]
    return placed, listed, headings, divided


def _values(sets: Mapping[str, Embeddings], opened: SketchedSets, settings: Settings) -> SharesBy | None:
    """Return the shares of the values of the column `by`; None if the settings name no column."""
    if settings.by is None:
        return None
    return shares_by(sets, settings.by, pairing=opened.pairing, rho=settings.rho, seed=settings.seed)


def _of_pairs(
    opened: SketchedSets,
    answer: Answer | None,
    listed: Sequence[Kind],
    divided: KindsOfSamples | None,
    settings: Settings,
    run: Run,
) -> dict[str, Any]:
    """Return what paired sets show beside kinds: pair by pair if they are paired by their ids, else by prompt."""
    if opened.pairing is None:
        return {}
    found: dict[str, Any] = {"pairs": opened.pairing.info}
    if opened.pairing.info.column == ID:
        from finc_eval.comparison.few_pairs import find_by_id  # measures of pictures, which other sets do not need

        return found | {"by_id": find_by_id(opened, answer, listed, divided, run)}
    if answer is None:
        return found
    asked = (opened.pairing, answer.kinds, settings.seed, run, opened.tower, opened.measured)
    return found | {"prompts": prompt_differences(*asked)}


def _with_captions(comparison: Comparison, opened: SketchedSets, run: Run) -> Comparison:
    """Add what is known of the samples that may be shown, if there are pictures to show."""
    shown = {label: side.embeddings for label, side in opened.sets.items() if side.embeddings is not None}
    if len(shown) < 2 or comparison.gen.samples is None:
        return comparison
    most = comparison.showing(MAX_SHOWN)
    return replace(comparison, captions=captions_of(shown, {label: most.shown_ids(label) for label in SET_NAMES}, run))


def _looks(sets: Mapping[str, Embeddings], opened: SketchedSets, settings: Settings) -> SeenLooks:
    """Return the looks in which the sets differ, with the samples that have each, and what was measured."""
    if settings.rho != 1 or not all(side.has_rows for side in opened.sets.values()):
        return [], ((), {})
    return look_at(sets, settings.seed, opened.blocks, known=opened.measured), opened.measured


def _with_findings(
    comparison: Comparison, sets: Mapping[str, Embeddings], seen: SeenLooks, opened: SketchedSets, run: Run
) -> Comparison:
    """Return a comparison with local evidence, with what is said of the sets, and which kinds each look explains."""
    if len(sets) == 2 and all(side.has_rows for side in opened.sets.values()):
        is_one = comparison.settings.rho == 1  # another ρ asks another question, and so do single pairs
        is_plain = comparison.by_id is None and is_one
        of_both = (sets, opened.blocks, comparison.settings.seed, run)
        local = find_parts(*of_both, measured=opened.measured) if is_one else LocalParts(None)
        parts, warnings = tuple(part for part, _ in local.parts), (*comparison.warnings, *local.notes)
        comparison = replace(comparison, local_p_value=local.p_value, parts=parts, warnings=warnings)
        kinds_of = kinds_of_rows(comparison.kinds, comparison.divided, run) if comparison.divided is not None else None
        held = hold_compared(comparison, sets, *seen, kinds_of, opened.blocks, run, local)
        comparison = replace(comparison, looks=with_kinds(comparison.looks, held, comparison.kinds))
        comparison = replace(comparison, findings=findings_of(comparison, held))
        if not comparison.findings and is_plain:
            equal = None if comparison.copies is None else comparison.copies.count
            asked = (sets, opened.measured, comparison.detectable, comparison.settings.seed, opened.blocks)
            return replace(comparison, visible=find_visible(*asked, equal=equal, run=run))
    return comparison


def _signature(
    gen: SketchedSet, ref: SketchedSet, settings: Settings, recall: float | None, kinds: KindTree | None
) -> Signature:
    groups = dict.fromkeys(side.sketch.groups or "none" for side in (gen, ref))
    return Signature.of(
        settings.method.name,
        (gen.sketch.n, ref.sketch.n),
        known_space([gen.sketch.space, ref.sketch.space]),
        ("ref", "+".join(source[:12] for source in ref.sketch.sources) or "streamed"),
        *gen.sketch.feature_map.signature(),
        *settings.signature(),
        *index_signature(recall),
        *([("groups", "/".join(groups))] if [*groups] != ["none"] else []),
        ("prec", "/".join(dict.fromkeys((gen.sketch.precision, ref.sketch.precision)))),
        ("se", "conservative" if gen.embeddings is None or ref.embeddings is None else "sharp"),
        *([] if kinds is None else [("kinds", kinds.digest[:12])]),
    )
