"""What private sketches and their ledgers print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finc_eval.report.formats import percent
from finc_eval.report.tables import p_value_text
from finc_eval.report.terminal import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from finc_eval.privacy.dp.ledger import Ledger
    from finc_eval.privacy.reference.result import PairedDifference, PrivateScore
    from finc_eval.privacy.reference.sketch import PrivateSketch


def print_private_sketch(path: str, sketch: PrivateSketch) -> None:
    """What a private sketch is of, and what it promises."""
    transform, phi = sketch.transform, sketch.feature_map
    print(f"{path}: private sketch of {sketch.m} records, {sketch.space}, {sketch.size} features")
    print(f"transform {transform.digest[:12]}: {transform.origin}")
    print(f"features: {phi.kind} {phi.order}, length scale {phi.length_scale:.4g}, radius {transform.radius:.4g}")
    if sketch.classes is not None:
        print(f"classes: {', '.join(sketch.classes)}")
    print(f"noise {sketch.noise:.4g} on every feature")
    for release in sketch.releases:
        print(f"{release.m} records, sensitivity {release.sensitivity:.4g}: {release.guarantee}")


def print_private_scores(scores: Sequence[PrivateScore], pairs: Sequence[PairedDifference]) -> None:
    """Scores against a private sketch, their parts, and the differences of pairs."""

    def cells(value: float, error: float, interval: tuple[float, float]) -> list[str]:
        return [f"{value:.3e}", f"{error:.1e}", f"[{interval[0]:.3e}, {interval[1]:.3e}]"]

    first = scores[0]
    rows = []
    for score in scores:
        low, high = score.noise_interval
        own = cells(score.value, score.standard_error, score.interval)
        rows.append([score.name, str(score.n), *own, f"[{low:.3e}, {high:.3e}]"])
    columns = ["generator", "n", "MMD²", "standard error", f"{percent(first.level)}", "noise alone"]
    print_table("Distance from the private records", columns, rows)
    parts = [
        [score.name, part.name, str(part.features), *cells(part.value, part.standard_error, part.interval)]
        for score in scores
        for part in (*score.degrees, *score.classes)
    ]
    print_table(
        "Part by part", ["generator", "part", "features", "MMD²", "standard error", percent(first.level)], parts
    )
    if pairs:
        rows = [
            [
                pair.first,
                pair.second,
                *cells(pair.value, pair.standard_error, pair.interval),
                p_value_text(pair.p_value),
            ]
            for pair in pairs
        ]
        columns = ["nearer", "farther", "difference", "standard error", percent(first.level), "p"]
        print_table("Paired differences, p adjusted for all pairs", columns, rows)
    print(f"differences below {first.smallest_detected:.3g} are hidden by the noise of the reference")
    for guarantee in first.guarantees:
        print(f"guarantee: {guarantee}")
    for note in dict.fromkeys(note for score in scores for note in score.notes):
        print(f"note: {note}")
    print(first.signature)


def print_ledger(ledger: Ledger) -> None:
    """What each data set has spent, and what is left."""
    content, budget = ledger.to_dict(), ledger.budget
    rows = [
        [
            ", ".join(one if len(one) < 20 else one[:12] for one in account["data"]),
            str(len(account["releases"])),
            f"{account['epsilon_spent']:.4g}",
            f"{account['epsilon_left']:.4g}",
        ]
        for account in content["data_sets"]
    ]
    print_table("", ["data set", "releases", "epsilon spent", "epsilon left"], rows)
    print(f"budget of each data set: epsilon {budget.epsilon:g}, delta {budget.delta:g}, {budget.adjacency} adjacency")
