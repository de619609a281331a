"""The terminal tables of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finc_eval.report.formats import percent
from finc_eval.report.tables import p_value_text
from finc_eval.report.terminal import print_table

if TYPE_CHECKING:
    from finc_eval.memorization.result import Audit


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
