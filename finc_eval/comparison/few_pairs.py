"""Pairs by id, also of fewer pairs than a comparison needs: these have no kinds, no directions, and need no network."""

from __future__ import annotations

from collections.abc import Sequence

from finc_eval.comparison.direction import Spectrum
from finc_eval.comparison.inputs import SketchedSets
from finc_eval.comparison.result import Comparison
from finc_eval.comparison.settings import Settings
from finc_eval.core.provenance import Provenance
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.recipe import known_space
from finc_eval.partitions.answer import Answer
from finc_eval.partitions.counts import MIN_SAMPLES, KindsOfSamples
from finc_eval.partitions.kind import Kind
from finc_eval.prompts.text import fits_of
from finc_eval.same_ids.compare_ids import MeasuredRuns
from finc_eval.same_ids.result import ById

FEW = (
    f"there are fewer than {MIN_SAMPLES} pairs: each pair is judged by what it shows, and kinds, directions and what "
    "is worse are not judged"
)


def find_by_id(
    opened: SketchedSets, answer: Answer | None, listed: Sequence[Kind], divided: KindsOfSamples | None, run: Run
) -> ById:
    """Say what changed, broke and is worse, pair by pair."""
    assert opened.pairing is not None
    kinds = None if answer is None else answer.cells_of_names(listed, divided)
    if opened.are_few:
        return MeasuredRuns.of(opened.pairing, opened.again, kinds, run).answer()
    fits = fits_of(opened.pairing.sets, opened.tower, run)
    return MeasuredRuns.of(opened.pairing, opened.again, kinds, run, fits, opened.measured[1]).answer()


def compare_few(opened: SketchedSets, settings: Settings, run: Run) -> Comparison:
    """Compare two sets of few pairs by what each pair shows."""
    assert opened.pairing is not None
    gen, ref = opened.sets["gen"], opened.sets["ref"]
    phi, space = gen.sketch.feature_map, known_space([gen.sketch.space, ref.sketch.space])
    return Comparison(
        kinds=(),
        headings=(),
        over=(),
        under=(),
        difference=None,
        difference_interval=None,
        difference_p_value=None,
        detectable=None,
        gen=gen.info(),
        ref=ref.info(),
        settings=settings,
        sigma_rule=opened.sigma_rule,
        signature=Signature.of(
            settings.method.name, (gen.sketch.n, ref.sketch.n), space, *phi.signature(), *settings.signature()
        ),
        space=space,
        tested=0,
        kinds_tested=0,
        spectrum=Spectrum((), ()),
        kernel_error=None,
        copies=None,
        warnings=(*(warning for warning in opened.warnings if warning != opened.pairing.info.sentence), FEW),
        pairs=opened.pairing.info,
        by_id=find_by_id(opened, None, (), None, run),
        feature_map=phi,
        divided=None,
        map=None,
        provenance=Provenance.here(run.device),
    )
