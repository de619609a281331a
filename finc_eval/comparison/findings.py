"""`Finding`: one difference of a set from another by name, as gates and boards say it in a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from finc_eval.comparison.headline import CHANCE, cut_name, differences_in_order, two_shares
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.core.words import percent
from finc_eval.embeddings.base import Embeddings
from finc_eval.naming.evidence import ADJECTIVE, SLIGHT, UniqueNames, starts_with_trait, unnamed
from finc_eval.naming.looks import REPEAT, Look, look_at, predicate, say_whole
from finc_eval.naming.measured import PictureLooks, measure_sets
from finc_eval.numerics.blocks import Blocked
from finc_eval.numerics.exchanges import EXCHANGED
from finc_eval.numerics.inference import ALPHA, BESIDE_ALPHA
from finc_eval.partitions.answer import divide
from finc_eval.partitions.kind import Kind, kinds_of_rows
from finc_eval.sketches.one_law import KeptSample, separate, sets_p_values

LACKING = 0.2  # part of its share in the other set up to which a set is said to lack a kind

EXCHANGES_OF_BOARDS = 7999
"""Random exchanges behind the p-values of looks, where up to 100 sets are compared with one and adjusted for all."""

EXCHANGES_OF_SETS = 1999
"""Random exchanges behind the p-value of a whole set on a board: enough to adjust for 25 models."""

PARTS = {1: "all", 3 / 4: "three quarters", 2 / 3: "two thirds", 1 / 2: "half", 1 / 3: "a third", 1 / 4: "a quarter",
         1 / 5: "a fifth", 1 / 10: "a tenth"}  # fmt: skip
"""Names of simple parts of a set."""


@dataclass(frozen=True)
class Finding(Record):
    """A difference of a set from another set, such as the reference or the release before.

    Attributes:
        name: what it is, such as "blurred", "one picture, 40 times" or "jellyfish".
        what: whether it is a look, a repeat, or a kind; or the sets as a whole, where nothing names the difference.
        whole: whether the whole set has moved, rather than a part of it.
        share: share of the set; of a whole set, beyond the middle of both sets; of the sets, the accuracy of a simple
            classifier, where it is surely above chance.
        before: share of the other set; of the sets, chance.
        p_value: its p-value, adjusted for all that was asked of the two sets.
        parts: ids of the kinds that it consists of; empty for looks and repeats.
    """

    name: str
    what: Literal["look", "repeat", "kind", "sets"]
    whole: bool
    share: float
    before: float
    p_value: float
    parts: tuple[str, ...] = ()

    @property
    def size(self) -> float:
        """Difference of both shares; 1 for a look of a whole set."""
        return 1.0 if self.whole and self.what == "look" else abs(self.share - self.before)

    @property
    def is_more(self) -> bool:
        """True if the set has more of it than the other set."""
        return self.share >= self.before

    @property
    def words(self) -> str:
        """The difference in a few words without numbers."""
        if self.what == "sets":
            return self.name
        if self.what == "repeat":
            return self.name if self.is_more else f"fewer repeats: {self.name}"
        if self.what == "look":
            return self._say_look()
        if self.is_more:
            return f"too many {self.name}"
        return f"lacks {self.name}" if self.share <= LACKING * self.before else f"too few {self.name}"

    def _say_look(self) -> str:
        """Say a look of the part of the set that has it, or of the whole set."""
        if self.whole:
            return say_whole(self.name, self.share, "the set")
        if self.is_more:
            return f"{part_in_words(self.share)} {predicate(self.name)}"
        part = f"only {two_shares(self.share, self.before)[0]}" if self.share else "none"
        return f"{part} {predicate(self.name)}"

    def say(self, other: str, allowed: str = "") -> str:
        """Say it with both shares: "a quarter is blurred (25 %, reference 1.0 %)"; `allowed` follows them."""
        if self.what == "sets":
            held_out = f"a classifier assigns {percent(self.share)} of held-out samples to their set"
            numbers = "; ".join([f"p = {self.p_value:.2g}", *[held_out] * (self.share > self.before)])
        elif self.whole:
            numbers = ""
        else:
            own, before = two_shares(self.share, self.before)
            is_said = self.words.startswith((own, f"only {own}", "none is", "none has"))
            numbers = f"{other} {before}" if is_said else f"{own}, {other} {before}"
        inside = "; ".join(one for one in (numbers, allowed) if one)
        return f"{self.words} ({inside})" if inside else self.words

    def change(self) -> str:
        """Say it as a change of the other set: "lost: jellyfish 4.4 → 0.2 %"."""
        if self.whole:
            return self.words
        before, own = (one.removesuffix(" %") for one in two_shares(self.before, self.share))
        verb = "more" if self.is_more else "lost" if self.share <= LACKING * self.before else "less"
        return f"{verb}: {self.name} {before} → {own} %"


def part_in_words(share: float) -> str:
    """Return the name of a simple part of a set that a share is near to, or the share in percent."""
    part, name = min(PARTS.items(), key=lambda one: abs(share / one[0] - 1))
    # 0.1: relative error up to which a share is called by the name of a simple part.
    return name if abs(share / part - 1) <= 0.1 else two_shares(share, 0.0)[0]


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
    clear = [one for one in found if one.p_value <= least.get(one.what, looks)]
    return tuple([one for one in clear if one.what != "sets"] or clear)


def look_finding(look: Look) -> Finding:
    """Return a look as a finding."""
    what: Literal["look", "repeat"] = "repeat" if look.trait == REPEAT else "look"
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
