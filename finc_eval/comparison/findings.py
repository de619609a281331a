"""Findings of two sets that are divided and looked at by themselves, as boards and gates have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from finc_eval.comparison.headline import CHANCE
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.findings.finding import Finding
from finc_eval.findings.found import hold_findings
from finc_eval.naming.evidence import SLIGHT
from finc_eval.naming.looks import look_at
from finc_eval.naming.measured import PictureLooks, measure_sets
from finc_eval.numerics.blocks import Blocked
from finc_eval.numerics.exchanges import EXCHANGED
from finc_eval.numerics.inference import ALPHA, BESIDE_ALPHA
from finc_eval.partitions.answer import divide
from finc_eval.partitions.kind import kinds_of_rows
from finc_eval.sketches.one_law import KeptSample, separate, sets_p_values

EXCHANGES_OF_BOARDS = 7999
"""Random exchanges behind the p-values of looks, where up to 100 sets are compared with one and adjusted for all."""

EXCHANGES_OF_SETS = 1999
"""Random exchanges behind the p-value of a whole set on a board: enough to adjust for 25 models."""


def differences_between(
    gen: Embeddings, ref: Embeddings, pictures: PictureLooks | None, seed: int, run: Run
) -> tuple[Finding, ...]:
    """Divide two sets into kinds of their own, look at both, and return in what they differ, the largest first.

    `pictures` is what `measure_pictures` returns for the reference, with which many sets may be compared.
    """
    pair = {"gen": gen, "ref": ref}
    kinds, headings, divided = divide(pair, seed=seed, run=run).described(pair)
    kinds_of = kinds_of_rows(kinds, divided, run)
    traits, measured = measure_sets(pair, {"ref": pictures})
    looks = look_at(pair, seed, known=(traits, measured), exchanges=EXCHANGES_OF_BOARDS)
    slight, _ = find_slight(pair, seed, run, exchanges=EXCHANGES_OF_SETS)
    held = hold_findings(pair, looks, kinds, headings, kinds_of, traits)
    return (*(one.finding for one in held), *slight)


def find_slight(
    sets: Mapping[str, Embeddings], seed: int, run: Run, *, blocked: Blocked | None = None, exchanges: int = EXCHANGED
) -> tuple[tuple[Finding, ...], dict[str, tuple[str, ...]]]:
    """Return that two sets differ as a whole, if they do, with the ids of the samples that tell them apart, by set.

    It is worth saying where no look and no kind differs.
    """
    p = next(iter(sets_p_values(sets, seed, run, blocked=blocked, exchanges=exchanges, is_screened=True).values()))
    if p is None or p > BESIDE_ALPHA:
        return (), {}
    apart = separate(*map(KeptSample.of, sets.values()))
    share = CHANCE if apart is None or apart.interval[0] <= CHANCE else apart.value
    found = Finding(SLIGHT, "sets", True, share, CHANCE, p)
    return (found,), {} if apart is None else apart.surest


def clear_among(found: Sequence[Finding], sets: int) -> tuple[Finding, ...]:
    """Return the findings that stay significant where so many sets are compared with one reference (Bonferroni).

    No p-value of a look is smaller than that of all its random exchanges, which the looks of more sets need. That a set
    differs as a whole is said only where nothing names it.
    """
    looks = max(BESIDE_ALPHA / sets, 1 / (EXCHANGES_OF_BOARDS + 1))
    least = {"kind": ALPHA / sets, "sets": max(looks, 1 / (EXCHANGES_OF_SETS + 1))}
    clear = [one for one in found if one.p_value is None or one.p_value <= least.get(one.kind, looks)]
    return tuple([one for one in clear if one.kind != "sets"] or clear)
