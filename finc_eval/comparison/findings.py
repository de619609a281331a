"""Findings of two sets: what a comparison says, and of sets that a board or a gate divides and looks at itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.comparison.direction import Direction, SetLabel
from finc_eval.comparison.headline import (
    CHANCE,
    MAX_SENTENCE,
    Compared,
    of_pairs,
    p_of_sets,
    say_slight,
    sets_differ,
    thing_of,
)
from finc_eval.core.run import Run
from finc_eval.core.words import percent, quote, say_part, say_whole
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.set_info import titles_of
from finc_eval.findings.causes import Held, Members
from finc_eval.findings.copies import hold_copies
from finc_eval.findings.facts import OF_GEN
from finc_eval.findings.finding import OF_TRAITS, Finding, have_part, two_shares
from finc_eval.findings.found import KindsOf, find_differences, hold_findings, in_order
from finc_eval.findings.local import LocalParts, find_parts
from finc_eval.findings.names import KindNames, usual_of
from finc_eval.findings.over_time import find_drifts
from finc_eval.findings.visible import Visible, count_equal, find_visible
from finc_eval.naming.evidence import SLIGHT
from finc_eval.naming.looks import EXAMPLES, Look, look_at
from finc_eval.naming.measured import MeasuredSets, PictureLooks, looked_rows, measure_sets
from finc_eval.naming.properties import split_words
from finc_eval.numerics.blocks import Blocked
from finc_eval.numerics.exchanges import EXCHANGED
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.inference import ALPHA, BESIDE_ALPHA, significant
from finc_eval.partitions.answer import divide
from finc_eval.partitions.kind import Kind, kinds_of_rows
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.prompts.result import PromptDifferences
from finc_eval.sketches.one_law import KeptSample, separate, sets_p_values


def findings_of(comparison: Compared, held: Sequence[Held] | None = None) -> tuple[Finding, ...]:
    """Return what a comparison says, the largest first: looks, repeats, copies, kinds, words of prompts, directions.

    `held` are the causes among looks, copies, kinds and words, with their samples; default: what the comparison itself
    knows of what looks explain. Directions are said of a comparison without kinds. What pairs of the same ids show
    comes first, and judges the looks of whole sets, and of parts where it names a look; nothing else is said where a
    whole run is at fault.
    """
    if held is None:
        every = [*find_differences(comparison.looks, comparison.kinds, comparison.headings), *word_findings(comparison)]
    else:
        every = [each.finding for each in held]
    if thing_of(comparison) == "direction":
        of_directions = KindNames(comparison.directions)
        firm = [direction for direction in significant(comparison.directions, ALPHA) if direction.firm]
        every += [_direction_finding(direction, of_directions) for direction in firm]
    if not every and sets_differ(comparison):
        every = [_slight_finding(comparison)]
    paired = () if comparison.by_id is None else of_pairs(comparison.by_id)
    if comparison.by_id is not None:
        judged = OF_TRAITS if any(finding.kind in OF_TRAITS for finding in paired) else ()
        is_told, is_of_pairs = comparison.by_id.run, comparison.by_id.explains
        every = [
            finding
            for finding in every
            if not (finding.whole or is_told or finding.kind in judged or is_of_pairs(finding))
        ]
    names: dict[str, KindNames] = {
        thing: KindNames(_named_as(thing, comparison)) for thing in {finding.kind for finding in every}
    }
    said = [replace(finding, text=_sentence(finding, comparison, names)) for finding in in_order(every)]
    return (*paired, *said)


def hold_compared(
    comparison: Compared,
    sets: Mapping[str, Embeddings],
    looks: Sequence[tuple[Look, Members]],
    measured: MeasuredSets,
    kinds_of: KindsOf | None,
    blocks: Mapping[str, NDArray[np.int64]] | None,
    run: Run,
    local: LocalParts,
) -> list[Held]:
    """Return the causes among the looks, copies, parts, kinds and words of a comparison, with their samples.

    Pairs of the same ids say themselves which pictures are copies; and with ρ other than 1, kinds alone are compared.
    """
    others = [] if comparison.by_id is not None or comparison.settings.rho != 1 else hold_copies(sets, run, blocks)
    if comparison.prompts is not None:
        others += hold_words(word_findings(comparison), comparison.prompts, sets)
    if comparison.by_id is None and comparison.settings.rho == 1:
        others += find_drifts(sets, measured, comparison.settings.seed, blocks)
    others += local.held()
    return hold_findings(sets, looks, comparison.kinds, comparison.headings, kinds_of, measured, others)


def with_kinds(looks: Sequence[Look], held: Sequence[Held], kinds: Sequence[Kind]) -> tuple[Look, ...]:
    """Return looks of parts of sets with the ids of the kinds that follow from them."""
    ids = {kind.id for kind in kinds}
    brought = {
        each.key: tuple(name for name in each.finding.explains if name in ids)
        for each in held
        if each.finding.kind in ("look", "repeat", "column")
    }
    return tuple(replace(look, kinds=() if look.whole else brought.get(look.name, ())) for look in looks)


def word_findings(comparison: Compared) -> list[Finding]:
    """Return the words of prompts whose images differ, at the level of all that a headline adds to kinds."""
    if comparison.prompts is None:
        return []
    return [
        Finding(
            word.text or "all prompts", "words", False, None, None, word.p_value, ids=word.sets["gen"].ids,
            interval=word.interval, text=word.what,
        )
        for word in comparison.prompts.clear
    ]  # fmt: skip


def hold_words(findings: Sequence[Finding], prompts: PromptDifferences, sets: Mapping[str, Embeddings]) -> list[Held]:
    """Return words of prompts with the samples whose prompts have them; of all prompts and of fit, with none."""
    column, held = prompts.column, []
    rows = {label: looked_rows(samples) for label, samples in sets.items()}
    known = all(column in samples.columns for samples in sets.values())
    texts = {label: [str(sets[label].column(column)[row]) for row in rows[label].tolist()] for label in rows if known}
    for finding, word in zip(findings, prompts.clear, strict=True):
        phrase = f" {' '.join(split_words(word.text))} "
        is_asked = known and word.what == "content" and bool(word.text)
        members = {
            label: np.array([is_asked and phrase in f" {' '.join(split_words(text))} " for text in texts[label]], bool)
            if known
            else np.zeros(len(looked), bool)
            for label, looked in rows.items()
        }
        held.append(
            Held(finding, members, finding.name, None, None, {label: each.ids for label, each in word.sets.items()})
        )
    return held


def _direction_finding(direction: Direction, names: KindNames) -> Finding:
    more_in: SetLabel = "gen" if direction.share_gen >= direction.share_ref else "ref"
    return Finding(
        names.noun(direction), "direction", False, direction.share_gen, direction.share_ref, direction.p_value,
        (direction.id,), ids=tuple(direction.typical(more_in)[:EXAMPLES]),
        interval=direction.share_difference_interval,
    )  # fmt: skip


def _slight_finding(comparison: Compared) -> Finding:
    """Return that the sets differ as a whole, which nothing names."""
    apart = comparison.separability
    share = CHANCE if apart is None or apart.interval[0] <= CHANCE else apart.value
    ids = () if apart is None else tuple(apart.surest.get("gen", ()))[:EXAMPLES]
    interval = None if apart is None else apart.interval
    p_value = p_of_sets(comparison)
    if p_value is None or p_value > BESIDE_ALPHA:
        p_value = comparison.local_p_value
    return Finding(SLIGHT, "sets", True, share, CHANCE, p_value, ids=ids, interval=interval)


def _named_as(thing: str, comparison: Compared) -> Sequence[Kind | Direction]:
    """Return the kinds, or the directions, whose names a sentence about one of them must tell apart."""
    if thing == "kind":
        return (*comparison.headings, *comparison.kinds)
    return comparison.directions if thing == "direction" else ()


def _sentence(finding: Finding, comparison: Compared, names: Mapping[str, KindNames]) -> str:
    """Return a finding of two sets as a sentence with its shares; `names` are those of all kinds and directions."""
    if finding.kind == "sets":
        return say_slight(comparison, finding)
    if finding.kind == "words":
        return _say_word(finding, comparison)
    if finding.whole:
        said = say_whole(finding.name, finding.share_interval, "the generated set")
        return f"{said[0].upper()}{said[1:]}."
    if finding.kind in ("kind", "direction"):
        known = _named_as(finding.kind, comparison)
        named = next(each for each in known if finding.parts in ((each.id,), getattr(each, "children", ())))
        if isinstance(named, Kind) and (usual := usual_of(named)) is not None:
            return names[finding.kind].say_usual(named, *usual, OF_GEN)
        shares = two_shares(finding.share_gen or 0.0, finding.share_ref or 0.0)
        verb = "is" if finding.kind == "kind" else "holds"
        name = names[finding.kind].quoted(named, finding.kind)
        if isinstance(named, Kind) and (points_within := _points_on_same_prompts(named)):
            return f"On the same prompts, the {name} is {points_within} frequent than in the reference."
        return f"The {name} {verb} {shares[0]}{OF_GEN} (reference {shares[1]})."
    if finding.kind == "copy":
        own = finding.say_shares(0)[0]
        return f"{own[0].upper()}{own[1:]}{OF_GEN} are {finding.name}."
    if finding.kind == "drift":
        said, name = say_part(finding.name, *finding.say_shares(0), is_more=finding.is_more), finding.name
        return f"{said.replace(name.removeprefix('with '), name.removeprefix('with ') + finding.since, 1)}."
    if finding.kind == "part":
        own, before = finding.say_shares(0)
        said, whose = (own, "generated") if finding.is_more else (before, "reference")
        return f"{said[0].upper()}{said[1:]} of the {whose} pictures {have_part(finding.name)}."
    return f"{say_part(finding.name, *finding.say_shares(0), is_more=finding.is_more)}."


def _points_on_same_prompts(kind: Kind) -> str:
    """Return how much more or less frequent a kind is within prompts, where its shares hide that; else ""."""
    more, plain = kind.share_difference, kind.share_gen - kind.share_ref
    if kind.mix is None or (more * plain > 0 and percent(kind.share_gen, 1) != percent(kind.share_ref, 1)):
        return ""
    return f"{100 * abs(more):.1f} points {'more' if more > 0 else 'less'}"


def _say_word(finding: Finding, comparison: Compared) -> str:
    """Return how images of prompts with a word differ, in a sentence."""
    assert comparison.prompts is not None
    titles = dict(zip(("gen", "ref"), titles_of(comparison.gen, comparison.ref), strict=True))
    words = [
        word
        for word in comparison.prompts.clear
        if (word.text or "all prompts", word.what) == (finding.name, finding.text)
    ]
    (sentence, *_) = replace(comparison.prompts, words=tuple(words)).sentences(titles)
    return (
        sentence if len(sentence.split()) <= MAX_SENTENCE else f"Images of prompts with {quote(finding.name)} differ."
    )


EXCHANGES_OF_BOARDS = 7999
"""Random exchanges behind the p-values of looks, where up to 100 sets are compared with one and adjusted for all."""

EXCHANGES_OF_SETS = 1999
"""Random exchanges behind the p-values of a whole set, and of parts of pictures, on a board: enough for 25 models."""


MODELS = (1, 2, 5, 10, 25, 100)
"""Numbers of models of a board for which it is known what would have been found of each."""


@dataclass(frozen=True)
class Differences:
    """Differences of a model from the reference of a board.

    Attributes:
        findings: in what they differ, the largest first.
        visible: what would have been found, by the number of models of the board; see `MODELS`.
    """

    findings: tuple[Finding, ...]
    visible: tuple[tuple[int, Visible], ...]


def differences_between(
    gen: Embeddings,
    ref: Embeddings,
    pictures: PictureLooks | None,
    seed: int,
    run: Run,
    kinds_of_both: KindTree | None = None,
) -> Differences:
    """Divide two sets into kinds of their own, look at both, and return in what they differ.

    `pictures` is what `measure_pictures` returns for the reference, with which many sets may be compared;
    `kinds_of_both` are the kinds of both sets, where they are known.
    """
    pair = {"gen": gen, "ref": ref}
    answer = divide(pair, kinds=kinds_of_both, seed=seed, run=run)
    kinds, headings, divided = answer.described(pair)
    kinds_of = kinds_of_rows(kinds, divided, run)
    measured = measure_sets(pair, {"ref": pictures}, run)
    looks = look_at(pair, seed, known=measured, exchanges=EXCHANGES_OF_BOARDS)
    slight, surest = find_slight(pair, seed, run, exchanges=EXCHANGES_OF_SETS)
    local = find_parts(pair, seed=seed, run=run, permutations=EXCHANGES_OF_SETS, measured=measured)
    drifts = find_drifts(pair, measured, seed, exchanges=EXCHANGES_OF_BOARDS)
    others = [*hold_copies(pair, run), *drifts, *local.held()]
    held = hold_findings(pair, looks, kinds, headings, kinds_of, measured, others)
    equal = count_equal(pair, run)
    levels = {models: answer.choice.tests.detectable(level_of_each(ALPHA, models)) for models in MODELS}
    visible = (
        (models, find_visible(pair, measured, lost, seed, equal=equal, among=models)) for models, lost in levels.items()
    )
    shown = [*((each.finding, each.examples) for each in held), *((finding, surest) for finding in slight)]
    return Differences(tuple(_with_examples(*each) for each in shown), tuple(visible))


def _with_examples(finding: Finding, examples: Mapping[str, tuple[str, ...]]) -> Finding:
    """Return a finding with the ids of samples of both sets that show it."""
    own, other = ("gen", "ref") if finding.is_more else ("ref", "gen")
    return replace(finding, ids=finding.ids or tuple(examples.get(own, ())), ids_other=tuple(examples.get(other, ())))


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


def clear_among(findings: Sequence[Finding], sets: int) -> tuple[Finding, ...]:
    """Return the findings that stay significant where so many sets are compared with one reference (Bonferroni).

    No p-value of a look is smaller than that of all its random exchanges, which the looks of more sets need. That a set
    differs as a whole is said only where nothing names it.
    """
    looks = max(level_of_each(BESIDE_ALPHA, sets), 1 / (EXCHANGES_OF_BOARDS + 1))
    few = max(looks, 1 / (EXCHANGES_OF_SETS + 1))
    least = {"kind": level_of_each(ALPHA, sets), "sets": few, "part": few}
    clear = [
        finding for finding in findings if finding.p_value is None or finding.p_value <= least.get(finding.kind, looks)
    ]
    return tuple([finding for finding in clear if finding.kind != "sets"] or clear)
