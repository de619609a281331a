"""What private sketches, their ledgers and audits print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finc_eval.report.formats import percent
from finc_eval.report.tables import p_value_text
from finc_eval.report.terminal import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from finc_eval.memorization.result import Audit
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


def print_audit(audit: Audit) -> None:
    """The three blocks of an audit: measures beside fresh samples, attacks, and a stated guarantee."""
    from finc_eval.report.audit import ATTACK_NAMES, MEASURE_NAMES, cell, power_sentence

    rows = [
        [
            MEASURE_NAMES[one.name],
            f"{cell(one, one.value)} [{cell(one, one.interval[0])}, {cell(one, one.interval[1])}]",
            cell(one, one.control),
            "lower it" if one.copies_lower else "raise it",
            p_value_text(one.adjusted),
        ]
        for one in audit.copying.measures
    ]
    columns = ["measure", "generated [95 %]", "fresh samples", "copies", "adjusted p"]
    print_table("1. Copying in the samples", columns, rows)
    print(f"exact copies: {audit.copying.exact[0]} generated samples, {audit.copying.exact[1]} fresh ones")
    print(f"kinds memorized: {len(audit.copying.memorized_kinds)} of {len(audit.copying.kinds)}")
    print(power_sentence(audit))
    rows = []
    for attack in audit.attacks:
        found = attack.statistics
        low, high = found.auc_interval
        rates = [f"{percent(at.tpr, 1)}" for at in (found.at_1_percent, found.at_01_percent)]
        rows.append(
            [
                ATTACK_NAMES[attack.name],
                f"{found.auc:.3f} [{low:.3f}, {high:.3f}]",
                f"{attack.control.auc:.3f}",
                f"{found.advantage:.3f}",
                *rates,
                f"{found.epsilon_lower_bound:.2f}",
            ]
        )
    columns = ["attack", "AUC", "fresh samples", "advantage", "TPR at 1 %", "at 0.1 %", "epsilon at least"]
    print()
    print_table("2. Attackability: members against the holdout, intervals together at 95 %", columns, rows)
    print("\n3. Stated guarantee")
    if audit.stated is None:
        print("none was stated, and this audit is none")
    else:
        claim = f"epsilon {audit.stated.epsilon:g}, delta {audit.stated.delta:g}"
        if audit.stated.is_falsified:
            names = ", ".join(ATTACK_NAMES[name] for name in audit.stated.falsified_by)
            print(f"{claim} is FALSE: {names} got more than it allows")
        else:
            print(f"the attacks do not contradict {claim}, which does not confirm it")
    for warning in audit.warnings:
        print(f"note: {warning}")
    print(audit.signature)
