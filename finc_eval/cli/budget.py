"""Options of verbs that spend a privacy budget, and the ledger that they open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finc_eval.core.errors import BudgetError
from finc_eval.privacy.dp.ledger import Ledger, PlannedLedger
from finc_eval.privacy.dp.settings import PrivacySettings

LedgerFile = Annotated[Path, typer.Option(help="File that records what each data set has spent.")]
Budget = Annotated[
    float | None, typer.Option(help="ε that all releases about a data set may spend together, for a new ledger.")
]


def open_ledger(path: Path, budget: float | None, settings: PrivacySettings) -> Ledger:
    """Open the ledger at `path`; with a budget, plan a new one if it does not exist, made by its first spending."""
    if not path.exists():
        if budget is None:
            raise BudgetError(f"{path} does not exist: pass --budget, the epsilon that a data set may spend in all")
        return PlannedLedger(path, budget, settings.delta, settings.guarantee.adjacency)
    found = Ledger(path)
    if budget not in (None, found.budget.epsilon):
        raise BudgetError(f"{path} has a budget of epsilon {found.budget.epsilon:g}, which is set once: leave it out")
    return found
