"""Opening the sets of an audit: they are of one space, distinct, and large enough."""

from __future__ import annotations

from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.needs import needs_samples
from finc_eval.embeddings.opening import open_embeddings
from finc_eval.embeddings.recipe import check_alike
from finc_eval.embeddings.same_names import join_columns
from finc_eval.extractors.settings import AnyExtractor

MIN_AUDIT_SAMPLES = 100  # samples of each set that an audit needs: a hundredth of fewer would be none


def open_audit(
    gen: object, train: object, holdout: object, reference: object | None, extractor: AnyExtractor, run: Run
) -> tuple[dict[str, Embeddings], list[str]]:
    """Open the sets, check that they are of one space, distinct, and large enough; return sentences on their values."""
    given = {"gen": gen, "train": train, "holdout": holdout} | ({} if reference is None else {"reference": reference})
    sets = open_embeddings(given, extractor, run, checks=[NEEDS_OF_AUDIT])
    for label, embeddings in sets.items():
        if label != "gen":
            check_alike(sets["gen"].name, sets["gen"], embeddings.name, embeddings)
    for own, other, way_out in (
        ("holdout", "train", "samples that the generator has not seen"),
        ("reference", "train", "further samples, or none"),
        ("reference", "holdout", "further samples, or none"),
    ):
        if own in sets and sets[own].digest == sets[other].digest:
            raise IncompatibleError(f"{own} and {other} are the same samples: pass {way_out}")
    return join_columns(sets)


def _too_few(label: str, n: int) -> DataError:
    return DataError(
        f"{label} has {plural(n, 'sample')}: an audit needs at least {MIN_AUDIT_SAMPLES} of each set, and thousands to "
        "see a few copies"
    )


NEEDS_OF_AUDIT = needs_samples(MIN_AUDIT_SAMPLES, _too_few)
"""The check that an audit makes of its sets before its work."""


def check_overlap(overlap: int, holdout: Embeddings) -> None:
    """Raise DataError if too many samples of the holdout have the embedding of a training sample."""
    # 0.01: share of the holdout that may also be in the training set, as duplicates of a data set are.
    if overlap > 0.01 * holdout.n:
        raise DataError(
            f"{overlap} of the {holdout.n} samples of holdout have the same embedding as a training sample that occurs "
            "once: the two share samples, or the extractor does not tell some apart (blank or discrete ones): remove "
            "from the holdout what the training set has"
        )
