"""`Ceilings`: upper limits of any attack. The module loads no torch, so that verbs of budgets start at once."""

from __future__ import annotations

from dataclasses import dataclass

from finc_eval.core.record import Record


@dataclass(frozen=True)
class Ceilings(Record):
    """Upper limits of any attack that must decide which of two data sets, one record apart, was used.

    Attributes:
        auc: area under the attack's ROC curve: Φ(μ/√2).
        advantage: largest difference between true and false positive rate: 2Φ(μ/2) − 1.
        tpr_at_1_percent: true positive rate at a false positive rate α of 1 %: Φ(Φ⁻¹(α) + μ).
        tpr_at_01_percent: true positive rate at a false positive rate of 0.1 %.
    """

    auc: float
    advantage: float
    tpr_at_1_percent: float
    tpr_at_01_percent: float
