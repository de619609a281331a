"""Findings of a comparison in plain sentences: how different the sets are, in which kinds, and what may be missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from finc_eval.comparison.direction import Direction, Interval
from finc_eval.comparison.settings import StoredSettings
from finc_eval.core.words import join_words, percent, percent_range, plural, quote
from finc_eval.embeddings.set_info import SetInfo, titles_of
from finc_eval.findings.finding import two_shares
from finc_eval.naming.evidence import LOOKS_LIKE, SLIGHT, UniqueNames, read_alike, unnamed
from finc_eval.naming.looks import Look
from finc_eval.numerics.inference import ALPHA, BESIDE_ALPHA, significant
from finc_eval.partitions.answer import LARGEST
from finc_eval.partitions.kind import Kind, top_level
from finc_eval.prompts.table import PromptDifferences
from finc_eval.same_ids.result import ById
from finc_eval.sketches.one_law import Separability

CHANCE = 0.5  # share of samples of two equal sets that a classifier assigns to their set

MAX_WORDS = 45  # words of a headline, signs such as "%" among them
MAX_SENTENCE = 25  # words of a sentence of it
MAX_NAME = 5  # words of the name of a kind in it


class _Compared(Protocol):
    """Part of a `Comparison` that the headline reads."""

    @property
    def gen(self) -> SetInfo: ...
    @property
    def ref(self) -> SetInfo: ...
    @property
    def kinds(self) -> tuple[Kind, ...]: ...
    @property
    def headings(self) -> tuple[Kind, ...]: ...
    @property
    def directions(self) -> tuple[Direction, ...]: ...
    @property
    def settings(self) -> StoredSettings: ...
    @property
    def difference(self) -> float | None: ...
    @property
    def difference_interval(self) -> Interval | None: ...
    @property
    def difference_p_value(self) -> float | None: ...
    @property
    def detectable(self) -> float | None: ...
    @property
    def explained(self) -> float | None: ...
    @property
    def prompts(self) -> PromptDifferences | None: ...
    @property
    def by_id(self) -> ById | None: ...
    @property
    def looks(self) -> tuple[Look, ...]: ...
    @property
    def sets_p_value(self) -> float | None: ...
    @property
    def separability(self) -> Separability | None: ...
    @property
    def tested(self) -> int: ...
    @property
    def kinds_tested(self) -> int: ...


@dataclass(frozen=True)
class Fact:
    """A look, a repeat, words of prompts, a kind, or a direction in which the sets differ."""

    key: str  # id of a kind or a direction, name of a look, or "words 1"
    first: str  # the sentence that says of what a share is
    later: str  # the sentence behind another, which has said it
    size: float  # difference of both shares; 1 for a change of a whole set, and for words of prompts
    thing: str = "look"  # what it is one of


def says(found: _Compared) -> dict[str, str]:
    """Return what was found in at most `MAX_WORDS` words: at most three facts, and then what may have been missed.

    A fact has the id of its kind or direction as its key, or the name of its look. The smallest facts are left to the
    tables where the words do not suffice. Two runs with the same ids have sentences of their own, which
    judge the looks of whole sets; looks of parts, and kinds, follow them.
    """
    if found.by_id is not None:
        # Kinds and looks of parts say nothing more where the whole run is at fault.
        of_parts = [one for one in facts(found) if not (one.key.startswith("whole ") or found.by_id.run)]
        return found.by_id.sentences | {one.key: one.first for one in of_parts[:2]}
    told: dict[str, str] = {}
    every, count, missed = facts(found), 0, _missed(found)
    for count in range(min(LARGEST, len(every)), 0, -1):
        told = {one.key: one.later if place else one.first for place, one in enumerate(every[:count])}
        if _fits(told | missed):
            break
    told = told or _without_facts(found)
    if not told:
        return {"nothing": _nothing(found)} | _say_ratio(found)
    for more in (_count_rest(found, every[count:]), _say_ratio(found)):
        if _fits(told | more | missed):
            told |= more
    return told | missed


def _fits(sentences: Mapping[str, str]) -> bool:
    return len(" ".join(sentences.values()).split()) <= MAX_WORDS


def facts(found: _Compared) -> list[Fact]:
    """Return looks, repeats, words of prompts, headings and kinds that differ in one order, the largest first.

    A comparison without kinds has directions in their place.
    """
    names = UniqueNames((*found.headings, *found.kinds))
    every = [
        Fact(f"{'whole ' * one.whole}{one.name}", one.sentence, one.sentence, size_of(one))
        if isinstance(one, Look)
        else _of_shares("kind", "is", one, names)
        for one in differences_in_order(found.looks, found.kinds, found.headings)
    ]
    every += [Fact(f"words {place}", one, one, 1.0) for place, one in enumerate(_on_words(found), start=1)]
    if _thing(found) == "direction":
        names = UniqueNames(found.directions)
        firm = [one for one in significant(found.directions, ALPHA) if one.firm]
        every += [_of_shares("direction", "holds", one, names) for one in firm]
    return sorted(every, key=lambda one: -one.size)


def differences_in_order(looks: Sequence[Look], kinds: Sequence[Kind], headings: Sequence[Kind]) -> list[Look | Kind]:
    """Return looks, and headings and kinds that differ and that no look explains, the largest difference first.

    A look of the whole generated set leaves no kinds. Where looks explain a kind under a heading, what is left are the
    other kinds under it.
    """
    covered = {one for look in looks for one in look.kinds}
    left = [one for one in kinds if one.id not in covered]
    heads = [one for one in headings if covered.isdisjoint(one.children)]
    found = [] if any(look.whole for look in looks) else top_level(left, heads)
    return sorted([*looks, *found], key=lambda one: -size_of(one))


def size_of(one: Look | Kind | Direction) -> float:
    """Return the size of a difference: the difference of both shares; 1 for a look of a whole set."""
    return 1.0 if isinstance(one, Look) and one.whole else abs(one.share_gen - one.share_ref)


def _of_shares(thing: str, verb: str, one: Kind | Direction, names: UniqueNames) -> Fact:
    """Return what share of each set a kind, or a direction, has."""
    own, other = two_shares(one.share_gen, one.share_ref)
    called = unnamed(one.id) if one.name is None and thing == "kind" else f"{thing} {_name(one, names)}"
    share = f"The {called} {verb} {own}"
    first = f"{share} of the generated set (reference {other})."
    return Fact(one.id, first, f"{share} (reference {other}).", size_of(one), thing)


def _thing(found: _Compared) -> str:
    """Return what the sets were divided into."""
    return "kind" if found.difference is not None or found.kinds else "direction"


def _name(kind: Kind | Direction, names: UniqueNames) -> str:
    """Return the name of a kind in quotation marks, cut; the id without a name."""
    if kind.name is None:
        return kind.id
    short = quote(cut_name(kind, names))
    like = "like " * kind.name.startswith(LOOKS_LIKE)
    return f"{like}{short}, {kind.id}," if names.is_shared(kind) else f"{like}{short}"


def cut_name(kind: Kind | Direction, names: UniqueNames) -> str:
    """Return the first `MAX_NAME` words of the name of a kind."""
    words = names.words(kind).split()
    return " ".join(words[:MAX_NAME]) + "…" * (len(words) > MAX_NAME)


def _on_words(found: _Compared) -> list[str]:
    """Return in which words of prompts images differ, at the level of all that a headline adds to kinds."""
    if found.prompts is None:
        return []
    clear = found.prompts.clear
    titles = dict(zip(("gen", "ref"), titles_of(found.gen, found.ref), strict=True))
    sentences = replace(found.prompts, words=clear).sentences(titles)
    return [one for one in sentences if len(one.split()) <= MAX_SENTENCE] or (
        [f"Images of both sets differ with {plural(len(clear), 'word')} of prompts."] if clear else []
    )


def _count_rest(found: _Compared, left: Sequence[Fact]) -> dict[str, str]:
    """Return how many kinds, and looks of the sets, differ that the headline does not name, in a sentence."""
    counts = Counter(one.thing for one in left)
    if any(look.whole for look in found.looks):
        counts["kind"] = len(significant(found.kinds, ALPHA))
    parts = [plural(counts[thing], f"more {thing}") for thing in ("kind", "direction", "look") if counts[thing]]
    verb = "differs" if counts.total() == 1 else "differ"
    return {"rest": f"{join_words(parts)}{' of the sets' * bool(counts['look'])} {verb}."} if parts else {}


def _without_facts(found: _Compared) -> dict[str, str]:
    """Return what is known where no look and no kind differs, in sentences; none if the sets do not differ."""
    return say_apart(found) if sets_differ(found) else {}


def _p_of_sets(found: _Compared) -> float | None:
    """Return the p-value of the sets: of their own test, or without it of the shares of kinds."""
    return found.difference_p_value if found.sets_p_value is None else found.sets_p_value


def sets_differ(found: _Compared) -> bool:
    """Return whether the sets are said to differ."""
    p_value = _p_of_sets(found)
    return p_value is not None and p_value <= BESIDE_ALPHA


def say_apart(found: _Compared) -> dict[str, str]:
    """Return that the sets differ though nothing names it, and how well they can be told apart, in sentences."""
    slight = f": {SLIGHT}" * (found.sets_p_value is not None)
    sentences = {"sets": f"The sets differ (p = {_p_of_sets(found):.2g}), but no {_thing(found)} does{slight}."}
    if (apart := found.separability) is not None and apart.interval[0] > CHANCE:
        share = f"{percent(apart.value)} [{percent_range(apart.interval, CHANCE)}]"
        classifier = f"A classifier assigns {share} of held-out samples to their set; 50 % is chance."
        sentences["classifier"] = classifier
    return sentences


def _nothing(found: _Compared) -> str:
    """Return that nothing was found, and how rare a kind may have been missed, in a sentence."""
    if (untested := say_untested(found)) is not None:
        return untested
    what = (
        f"No {_thing(found)} differs significantly"
        if _p_of_sets(found) is None
        else "The sets do not differ significantly"
    )
    if found.detectable is None:
        return f"{what}."
    return (
        f"{what}; kinds below {percent(found.detectable, 1)} may be missed."
        if found.detectable < 1
        else f"{what}; {TOO_FEW}"
    )


TOO_FEW = "samples are too few for kinds."  # end of a sentence where no kind could have been found


def _missed(found: _Compared) -> dict[str, str]:
    """Return how rare a kind may have been missed, or that none was tested, in a sentence; none if nothing is known."""
    if (untested := say_untested(found)) is not None:
        return {"untested": untested}
    if found.detectable is None:
        return {}
    if found.detectable >= 1:
        return {"missed": TOO_FEW.capitalize()}
    return {"missed": f"Kinds below {percent(found.detectable, 1)} may be missed."}


def _say_ratio(found: _Compared) -> dict[str, str]:
    rho = found.settings.rho
    return {} if rho == 1 else {"ratio": f"A kind counts above {rho:g} times the other set's share."}


def short(found: _Compared) -> str:
    """Return how different the sets are, and in how many kinds, in a few words."""
    more, less = more_and_less(significant(found.kinds, ALPHA))
    numbers = [f"more of {plural(len(more), 'kind')}", f"less of {plural(len(less), 'kind')}"]
    return ", ".join([*([f"{_estimate(found)} different"] if found.difference is not None else []), *numbers])


def more_and_less(kinds: Sequence[Kind]) -> tuple[list[Kind], list[Kind]]:
    """Return the kinds that the generated set has more of, and the kinds that it has less of."""
    more = [kind for kind in kinds if kind.share_difference > 0]
    return more, [kind for kind in kinds if kind.share_difference <= 0]


def drifts(found: _Compared) -> list[Direction]:
    """Return the directions that differ significantly, which refits find again, and which no kind shows."""
    return [one for one in significant(found.directions, ALPHA) if one.firm and not is_shown(found, one)]


def is_shown(found: _Compared, one: Direction) -> bool:
    """Return whether a kind shows a direction: it has its best samples, or the same name."""
    kinds = significant(found.kinds, ALPHA)
    return one.shown_by_kinds or any(read_alike(one, kind) for kind in kinds)


def _estimate(found: _Compared) -> str:
    assert found.difference is not None
    assert found.difference_interval is not None
    return f"{percent(found.difference)} [{percent_range(found.difference_interval)}]"


def details(found: _Compared) -> dict[str, str]:
    """Return what stands behind the headline, a sentence by key.

    How different the sets are over all kinds, what the kinds explain of it, and which directions they do not show.
    """
    told = overall(found)
    if significant(found.kinds, ALPHA) and found.difference and found.explained is not None:
        part, whole = (f"{100 * one:.0f}" for one in (found.explained, found.difference))
        told |= {"explained": f"Kinds that differ explain {part} of {whole} points."} if whole != "0" else {}
    return told | say_drifts(found)


def say_drifts(found: _Compared) -> dict[str, str]:
    """Return which directions no kind shows, in a sentence, where there are any."""
    if found.explained is None or found.looks or not (alone := drifts(found)):
        return {}
    names = UniqueNames(found.directions)
    more = [f"{len(alone) - LARGEST} more"] if len(alone) > LARGEST else []
    names_alone = join_words([*(names.title(one) for one in alone[:LARGEST]), *more])
    what = "A direction differs" if len(alone) == 1 else f"{len(alone)} directions differ"
    shown = "that no kind shows, such as a change of style or quality over many kinds"
    return {"drifts": f"{what} {shown}: {names_alone}."}


def overall(found: _Compared) -> dict[str, str]:
    """Return how different the shares of kinds are in all, in a sentence, where that is known.

    The key says how sure that is: "change", "uncertain", "chance", or "untested".
    """
    if found.difference is None:
        return {}
    change = f"{_estimate(found)} of the samples would have to change kind to make"
    if found.difference_p_value is None:
        key, first = "untested", "A set has too few independent samples to test how different the sets are as a whole"
    elif found.difference_p_value > ALPHA:
        p_value = f"p = {found.difference_p_value:.2g}"
        key, first = "chance", f"Over all kinds together, the difference is within chance ({p_value})"
    elif found.difference_interval is not None and found.difference_interval[0] == 0:
        p_value = f"p = {found.difference_p_value:.2g}"
        key, first = "uncertain", f"Over all kinds together, the shares differ ({p_value}), but by an uncertain amount"
    else:
        return {"change": f"About {change} the sets alike."}
    return {key: f"{first}: an estimated {change} them alike."}


def say_untested(found: _Compared) -> str | None:
    """Return that nothing was tested, in a sentence; None if something was."""
    if found.tested or found.kinds_tested:
        return None
    return "No kind of samples was tested: a set has too few independent samples."
