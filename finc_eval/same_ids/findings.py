"""Findings of two runs with the same ids: how all pairs look otherwise, and what the broken pairs are.

Broken pairs are members of a set as any others: they are asked which kind, label, repeat or copy they are, or which
word their prompts have. The answer that has most in common with them, as a part of both together (Jaccard 1912), is
their name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.words import percent, plural, quote
from finc_eval.findings.finding import Finding, What, two_shares
from finc_eval.naming.columns import is_look
from finc_eval.naming.evidence import MOST
from finc_eval.naming.properties import TEXT_COLUMNS, common_word, split_words
from finc_eval.naming.questions import enrichment_p
from finc_eval.naming.repeated import COPIES
from finc_eval.numerics.families import bonferroni
from finc_eval.numerics.inference import ALPHA
from finc_eval.same_ids.pairs import Aligned
from finc_eval.same_ids.result import OTHER_PICTURES
from finc_eval.same_ids.run_names import EXCHANGED_IDS, ONE_PICTURE_NAME
from finc_eval.same_ids.seen import ANOTHER, GRAY_WORDS, OTHER_ID, TURNED_GRAY
from finc_eval.same_ids.verdict import RunVerdict
from finc_eval.same_ids.worse import Margin, MovedLook, causes_among

Mask = NDArray[np.bool_]

VAGUE = ("", ANOTHER, OTHER_ID, "another sample")  # causes of pairs that say nothing of what their pictures are
SAY_LITTLE = (OTHER_PICTURES, "the picture of another id", ONE_PICTURE_NAME, EXCHANGED_IDS)  # ends of names of runs
SEVERAL_WAYS = "broken in several ways"  # name of broken pairs, if no cause is that of most
SHOWN_IDS = 12  # ids of pairs that a finding shows
KIND_NUMBER = re.compile(r" \(k\d+\)$|^samples \(k\d+\)$|^kind \d+$")  # the id in the name of a kind, or its number

MARGIN_KINDS: dict[str, What] = {"kind": "kind", "repeats": "repeat"}
"""Kind of the finding of a thing that is worse, besides looks; of the diversity of a prompt and its fit, "metric"."""


@dataclass(frozen=True)
class KnownOfPairs:
    """Knowledge of all pairs beyond what each shows: of n pairs.

    Attributes:
        cells: kinds of both samples, (n,) each, and their names; None without kinds.
        repeated: whether each sample repeats another sample of its set, (n,) each, and what the repeat is called.
    """

    cells: tuple[NDArray[np.int64], NDArray[np.int64], Sequence[str]] | None
    repeated: tuple[Mask, Mask, str] | None


NOTHING = KnownOfPairs(None, None)


@dataclass(frozen=True, eq=False)
class _Answer:
    """A set of pairs that broken pairs may be: what they have in common, and their share in both sets."""

    kind: What
    name: str
    has: Mask
    shares: tuple[float, float]
    ways: int = 1  # number of answers that it was chosen among


def find_findings(
    pairs: Aligned,
    judged: RunVerdict,
    known: KnownOfPairs,
    looks: Sequence[MovedLook],
    worse: Sequence[Margin],
    furthest: tuple[str, ...],
) -> tuple[Finding, ...]:
    """Return what differs between two runs, the largest first: broken pairs, looks of all pairs, and what is worse.

    `furthest` are ids of the pairs that are furthest apart, which show what is of all pairs.
    """
    broken = [_of_pairs(pairs, judged, known)] if judged.broken.any() else []
    of_looks = [_of_look(cause, follows) for cause, follows in causes_among(list(looks))]
    if broken and broken[0].kind in ("repeat", "copy") and broken[0].share_gen == 1:
        # All pictures are others: how they look follows.
        broken[0] = replace(broken[0], explains=(*broken[0].explains, *(look.name for look in of_looks)))
        of_looks = []
    names = {finding.name for finding in (*broken, *of_looks)}
    # Copies and repeats among the broken pairs are what repeats.
    are_said = {"look", "part"} | (
        {"repeats"} if any(finding.kind in ("copy", "repeat") for finding in broken) else set()
    )
    others = [_of_margin(margin) for margin in worse if margin.what not in are_said]
    others = [finding for finding in others if finding.name not in names]
    # A fault of all pairs that is a look, such as gray, is said once.
    broken = [
        finding for finding in broken if finding.kind != "pair" or finding.name not in {look.name for look in of_looks}
    ]
    found = sorted([*broken, *of_looks, *others], key=lambda finding: -finding.size)
    return tuple(finding if finding.ids else replace(finding, ids=furthest[:SHOWN_IDS]) for finding in found)


def _of_look(cause: MovedLook, follows: Sequence[MovedLook]) -> Finding:
    margin = cause.margin
    kind: What = "look" if is_look(cause.trait.name) else "column"
    share, before = margin.shares or (None, None)
    # A look that is not bad by itself is worse by what follows from it: streaks of motion blur pictures.
    is_worse = any(look.is_bad for look in (cause, *follows))
    return Finding(
        margin.name, kind, margin.shares is None, share, before, None, text=margin.sentence_part,
        interval=margin.interval, explains=tuple(look.margin.name for look in follows), is_worse=is_worse,
    )  # fmt: skip


def _of_margin(margin: Margin) -> Finding:
    kind = MARGIN_KINDS.get(margin.what, "metric")
    name = KIND_NUMBER.sub("", margin.name) or margin.name
    share, before = margin.shares or (None, None)
    return Finding(
        name, kind, margin.shares is None, share, before, None, text=margin.sentence_part, interval=margin.interval,
        is_worse=True,
    )  # fmt: skip


def _of_pairs(pairs: Aligned, judged: RunVerdict, known: KnownOfPairs) -> Finding:
    """Return what the broken pairs are: what they have in common, or else what nearly all of them show."""
    share = float(judged.broken.mean())
    ids = tuple(str(name) for name in pairs.ids[judged.broken][:SHOWN_IDS])
    vague = judged.broken & np.isin(judged.causes, VAGUE)
    is_rule = bool(judged.run) and not judged.run.endswith(SAY_LITTLE)
    is_vague = not is_rule and vague.sum() >= MOST * judged.broken.sum()
    if is_vague and (best := _best_answer(pairs, known, vague)) is not None:
        answer, p_value = best
        return Finding(
            answer.name, answer.kind, False, *answer.shares, p_value, text=_say(answer, share), ids=ids,
            explains=(OTHER_PICTURES,), is_worse=True,
        )  # fmt: skip
    count = f"{int(judged.broken.sum()):,} of {plural(len(judged.broken), 'pair')}"
    cause = Counter(judged.causes[judged.broken].tolist()).most_common(1)[0][0] or OTHER_PICTURES
    name = judged.run if is_rule and cause not in judged.run else _name_causes(judged.causes[judged.broken])
    return Finding(name, "pair", False, share, 0.0, None, text=judged.run or count, ids=ids, is_worse=True)


def _name_causes(causes: NDArray[np.str_]) -> str:
    """Return what all of some broken pairs show, or what most of them show."""
    called = [OTHER_PICTURES if cause in VAGUE else cause for cause in causes.tolist()]
    name, times = Counter(GRAY_WORDS if cause == TURNED_GRAY else cause for cause in called).most_common(1)[0]
    return name if times == len(called) else f"mostly {name}" if times >= MOST * len(called) else SEVERAL_WAYS


def _say(answer: _Answer, share: float) -> str:
    """Say what broken pairs are, with the share of the pairs."""
    now, before = two_shares(*answer.shares)
    show = f"{percent(share)} of the pairs"
    match answer.kind:
        case "words":
            return f"{show} show another picture, and their prompts have {quote(answer.name)}"
        case "copy":
            return f"{show} are {COPIES}: pictures of other ids"
        case "repeat":
            return f"{answer.name}, in {show}"
    return f"{quote(answer.name)} is {now} of the samples (reference {before}): {show} show another picture"


def _best_answer(pairs: Aligned, known: KnownOfPairs, vague: Mask) -> tuple[_Answer, float] | None:
    """Return the answer with most in common with the vague pairs, and its p-value; None if none is clear.

    Clear are at least `MOST` of both together, more often than by chance (Fisher's exact test; Bonferroni).
    """
    answers = list(_answers(pairs, known, vague))
    if not answers:
        return None
    n, broken = len(vague), int(vague.sum())
    sizes = np.array([answer.has.sum() for answer in answers])
    inside = np.array([(answer.has & vague).sum() for answer in answers])
    common = inside / (sizes + broken - inside)
    best = int(common.argmax())
    ways = sum(answer.ways for answer in answers)
    p_values = bonferroni(enrichment_p(inside, sizes, broken - inside, n - sizes), ways)
    # Repeats and copies are seen in each sample: where all pairs are, chance has no part in it.
    is_clear = p_values[best] <= ALPHA or answers[best].kind in ("repeat", "copy")
    return (answers[best], float(p_values[best])) if common[best] >= MOST and is_clear else None


def _answers(pairs: Aligned, known: KnownOfPairs, vague: Mask) -> Iterator[_Answer]:
    """Yield what the vague pairs may be; of answers with as much in common, the first is said."""
    if known.repeated is not None:
        again, repeated_before, name = known.repeated
        shares = float(again.mean()), float(repeated_before.mean())
        yield _Answer("repeat", name, again & ~repeated_before, shares)
    if (contents := pairs.contents()) is not None:
        now, before = contents.T
        _, place, times = np.unique(now, return_inverse=True, return_counts=True)
        # Of ids that are exchanged, each picture is still there once.
        copied = np.isin(now, before) & (now != before) & (times[place.reshape(-1)] > 1)
        copied &= len(np.unique(now[copied])) > copied.sum() / 2  # a picture that comes many times is a repeat
        yield _Answer("copy", COPIES, copied, (float(copied.mean()), 0.0))
    column = next((candidate for candidate in TEXT_COLUMNS if candidate in pairs.gen.columns), None)
    if column is not None:
        texts = np.array(pairs.gen.column(column))[pairs.rows[0]]
        if word := common_word(texts[vague].tolist(), texts.tolist()):
            words = [set(split_words(text)) for text in texts.tolist()]
            asks = np.array([word in of_pair for of_pair in words])
            yield _Answer("words", word, asks, (float(vague.mean()), 0.0), len(set().union(*words)))
    for names, now, before in _groups(pairs, known):
        for number, name in enumerate(names):
            shares = float((now == number).mean()), float((before == number).mean())
            if name and shares[0] != shares[1]:
                has = now == number if shares[0] > shares[1] else before == number
                yield _Answer("kind", name, has, shares)


def _groups(pairs: Aligned, known: KnownOfPairs) -> Iterator[tuple[list[str], NDArray[np.int64], NDArray[np.int64]]]:
    """Yield names, and the number of that of both samples of each pair: of labels, and of kinds with a name."""
    if all("label" in samples.columns for samples in (pairs.gen, pairs.ref)):
        sides = [
            np.array(samples.column("label"))[rows]
            for samples, rows in zip((pairs.gen, pairs.ref), pairs.rows, strict=True)
        ]
        labels, numbers = np.unique(np.concatenate(sides), return_inverse=True)
        first, second = np.split(numbers.reshape(-1), 2)
        yield labels.tolist(), first, second
    if known.cells is not None:
        now, before, kinds = known.cells
        yield [KIND_NUMBER.sub("", name) for name in kinds], now, before
