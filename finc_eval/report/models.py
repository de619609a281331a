"""From a table of models to HTML: the modes on which they differ, and which model owns how much of each."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from finc_eval.comparison.models import REFERENCE, ModelTable
from finc_eval.report.pages import ALPHA, LEAD, SHOWN, environment, interval_scale, kinds
from finc_eval.report.thumbnails import Thumbnail, read_thumbnails
from finc_eval.samples import Samples


def render_models(table: ModelTable, samples: Mapping[str, Samples] | None = None) -> str:
    """The page of a table of models as the text of one HTML file that loads nothing.

    Args:
        table: what to show.
        samples: where the samples of sets are, by label, if not at their own source: anything that `open_source`
            takes. Samples that cannot be read are shown by their ids, and the page says why.
    """
    pictures, notes = _pictures(table, samples or {})
    return (
        environment()
        .get_template("models.html")
        .render(
            table=table,
            groups=_groups(table),
            reference=REFERENCE,
            pictures=pictures,
            summary=summary(table),
            warnings=(),
            notes=notes,
            interval=interval_scale((mode.excess, mode.interval) for mode in table.modes),
            alpha=ALPHA,
            shown=SHOWN,
            lead=LEAD,
            settings=table.feature_map,
            version=version("finc-eval"),
        )
    )


def summary(table: ModelTable) -> str:
    """What was found, in a few plain sentences."""
    significant = table.significant(ALPHA)
    owners = {label: sum(mode.owner == label for mode in significant) for label in table.sets}
    passed = f"(adjusted p ≤ {ALPHA:g})"
    models = [(label, count) for label, count in owners.items() if count and label != REFERENCE]
    sentences = []
    if models:
        (first, count), *others = models
        rest = "".join(f", {label} of {count}" for label, count in others)
        sentences.append(f"Against the mean of all other sets, {first} has more of {kinds(count)}{rest} {passed}.")
    if owners.get(REFERENCE):
        sentences.append(f"The models make too little of {kinds(owners[REFERENCE])} that the reference has {passed}.")
    if not significant:
        sentences.append(f"No kind of samples is significantly more frequent in one set than in the others {passed}.")
    if table.rho != 1:
        sentences.append(f"A kind counts where a set has more than {table.rho:g} times the mean mass of the others.")
    sentences.append(f"{len(table.sets)} sets were compared, and {table.tested:,} directions were tested.")
    return " ".join(sentences)


def _groups(table: ModelTable) -> list[tuple[str, str, str, tuple[object, ...]]]:
    """The modes that models own, and those that the reference owns, each with a class, a heading and a meaning."""
    of_models = tuple(mode for mode in table.modes if mode.owner != REFERENCE)
    groups: list[tuple[str, str, str, tuple[object, ...]]] = [
        ("gen", "In models", "more in one model than in the mean of all other sets", of_models)
    ]
    if REFERENCE in table.sets:
        of_reference = tuple(mode for mode in table.modes if mode.owner == REFERENCE)
        groups.append(("ref", "In the reference", "what the models lack", of_reference))
    return groups


def _pictures(table: ModelTable, samples: Mapping[str, Samples]) -> tuple[dict[str, dict[str, Thumbnail]], list[str]]:
    """Thumbnails of the samples that owners have most of each mode, and a sentence for each set that lacks some."""
    pictures, notes = {}, []
    for label, info in table.sets.items():
        shown = [name for mode in table.modes if mode.owner == label for name in mode.holdings[label].top_ids[:SHOWN]]
        source = samples.get(label, info.source)
        pictures[label], note = read_thumbnails(label, source, shown, f"samples={{{label!r}: …}}", info.clip)
        notes += [note] if note else []
    return pictures, notes
