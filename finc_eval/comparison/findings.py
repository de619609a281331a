"""Findings of two sets: the looks, repeats and kinds in which they differ, as gates and boards say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from finc_eval.comparison.headline import CHANCE, cut_name, differences_in_order
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.findings.finding import Finding, What
from finc_eval.naming.evidence import ADJECTIVE, SLIGHT, UniqueNames, starts_with_trait, unnamed
from finc_eval.naming.looks import REPEAT, Look, look_at
from finc_eval.naming.measured import PictureLooks, measure_sets
from finc_eval.numerics.blocks import Blocked
from finc_eval.numerics.exchanges import EXCHANGED
from finc_eval.numerics.inference import ALPHA, BESIDE_ALPHA
from finc_eval.partitions.answer import divide
from finc_eval.partitions.kind import Kind, kinds_of_rows
from finc_eval.sketches.one_law import KeptSample, separate, sets_p_values

EXCHANGES_OF_BOARDS = 7999
"""Random exchanges behind the p-values of looks, where up to 100 sets are compared with one and adjusted for all."""

EXCHANGES_OF_SETS = 1999
"""Random exchanges behind the p-value of a whole set on a board: enough to adjust for 25 models."""


def find_differences(
    looks: Sequence[Look], kinds: Sequence[Kind], headings: Sequence[Kind] = ()
) -> tuple[Finding, ...]:
    """Return the looks, repeats and kinds in which two sets differ, the largest first.

    Kinds that a look explains, and kinds under a heading, are not found again.
    """
    names = UniqueNames((*headings, *kinds))
    found = differences_in_order(looks, kinds, headings)
    return tuple(look_finding(one) if isinstance(one, Look) else _kind_finding(one, names) for one in found)


def differences_between(
    gen: Embeddings, ref: Embeddings, pictures: PictureLooks | None, seed: int, run: Run
) -> tuple[Finding, ...]:
    """Divide two sets into kinds of their own, look at both, and return in what they differ, the largest first.

    `pictures` is what `measure_pictures` returns for the reference, with which many sets may be compared.
    """
    pair = {"gen": gen, "ref": ref}
    kinds, headings, divided = divide(pair, seed=seed, run=run).described(pair)
    kinds_of = kinds_of_rows(kinds, divided, run)
    looks = look_at(pair, seed, None, kinds_of, measure_sets(pair, {"ref": pictures}), EXCHANGES_OF_BOARDS)
    slight, _ = find_slight(pair, seed, run, exchanges=EXCHANGES_OF_SETS)
    return (*find_differences([look for look, _ in looks], kinds, headings), *slight)


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


def look_finding(look: Look) -> Finding:
    """Return a look as a finding."""
    what: What = "repeat" if look.trait == REPEAT else "look"
    return Finding(look.name, what, look.whole, look.share_gen, look.share_ref, look.p_value, look.kinds)


def _kind_finding(kind: Kind, names: UniqueNames) -> Finding:
    """Return a kind, or a heading of kinds, as a finding."""
    parts = kind.children or (kind.id,)
    return Finding(_short_name(kind, names), "kind", False, kind.share_gen, kind.share_ref, kind.p_value, parts)


def _short_name(kind: Kind, names: UniqueNames) -> str:
    """Return a name of a few words; with the id where others read the same, or without a name."""
    if kind.name is None:
        return unnamed(kind.id)
    short = cut_name(kind, names)
    short = f"{ADJECTIVE}{short}" if starts_with_trait(kind.name, kind.evidence) else short
    return f"{short} ({kind.id})" if names.is_shared(kind) else short
