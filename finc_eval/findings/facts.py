"""Facts of a headline: the names of all that differs, each in as many words as there are for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from finc_eval.core.words import is_nearly_all, join_words, percent, plural, quote
from finc_eval.findings.finding import OF_TRAITS, Finding, with_part
from finc_eval.naming.evidence import is_unnamed

OF_GEN = " of the generated set"  # words of a sentence that say of what its first share is
WHOLE = "The generated set "  # beginning of a sentence on a set that has moved on average
SENTENCES = 2  # first findings that have a sentence each; later ones share a sentence
WITH_ID = re.compile(r"(.+) \((k\d+)\)")  # name of a kind that another kind has, too

FULL, LATER, SHORT, NAME = range(4)  # forms of a fact, each shorter than the form before


def tell(findings: Sequence[Finding], most: int, longest: int) -> tuple[dict[Finding, str], str]:
    """Return the facts of findings, and a sentence on those that are only counted, "" without any.

    The first finding has its whole sentence. Later facts become shorter from the last on where words are few, and are
    counted only where their names do not fit. Kinds without a name come last, and are counted behind two sentences.

    Args:
        findings: findings with their sentences, the largest first.
        most: number of words of everything.
        longest: number of words of one sentence.

    Example:
        >>> from finc_eval.findings.facts import tell
        >>> from finc_eval.findings.finding import Finding
        >>> found = [Finding(name, "look", False, 0.2, 0.0, 0.01) for name in ("gray", "dark", "pale", "blurred")]
        >>> " ".join(tell(found, 45, 25)[0].values())
        '20 % is gray (reference 0.0 %). 20 % is dark (reference 0.0 %). Also 20 % pale, 20 % blurred.'
    """
    ordered = sorted(findings, key=lambda finding: is_unnamed(finding.name))
    told = [each for place, each in enumerate(ordered) if place < SENTENCES or not is_unnamed(each.name)]
    unnamed = ordered[len(told) :]
    texts: dict[Finding, str] = {}
    rest = ""
    for forms in _plans(told[:most]):  # each has a word at least
        texts = _write(told[: len(forms)], forms, longest)
        rest = _count(told, len(forms), unnamed)
        if len(" ".join([*texts.values(), rest]).split()) <= most:
            break
    return texts, rest


def _plans(told: Sequence[Finding]) -> Iterator[list[int]]:
    """Yield the forms of the facts that are told, fewer words each time. Words of prompts have no share, but a verb."""
    count = len(told)
    forms = [LATER if place < SENTENCES or told[place].kind == "words" else SHORT for place in range(count)]
    forms[:1] = [FULL] * min(count, 1)
    yield forms
    for place in range(count - 1, 0, -1):
        for form in range(forms[place] + 1, NAME + 1):
            forms = [*forms[:place], form, *forms[place + 1 :]]
            yield forms
    for left in range(count - 1, 0, -1):
        yield forms[:left]


def _write(told: Sequence[Finding], forms: Sequence[int], longest: int) -> dict[Finding, str]:
    """Write facts: a sentence each, and then lists in sentences of at most so many words."""
    texts: dict[Finding, str] = {}
    listed: list[Finding] = []  # of the sentence that is being written
    for finding, form in zip(told, forms, strict=True):
        if form < SHORT:
            is_said = form == LATER and any(OF_GEN in text or WHOLE in text for text in texts.values())
            if finding.sentence.startswith(WHOLE):  # "It" is the subject of the sentence before
                is_said = is_said and [*texts.values()][-1].startswith((WHOLE, "It ", "Nearly all of", "All of"))
            texts[finding] = later(finding) if is_said else finding.sentence
            listed = []
            continue
        fact = short(finding) if form == SHORT else name_alone(finding)
        is_too_long = sum(len(texts[each].split()) for each in listed) + len(fact.split()) > longest
        if listed and not is_too_long:
            texts[listed[-1]] = f"{texts[listed[-1]].removesuffix('.')},"
        listed = [finding] if is_too_long else [*listed, finding]
        texts[finding] = f"{'Also ' * (len(listed) == 1)}{fact}."
    return texts


def _count(told: Sequence[Finding], said: int, unnamed: Sequence[Finding]) -> str:
    """Return how many findings have no place, and how many kinds have no name, in a sentence."""
    left = Counter(finding.kind if finding.kind in ("kind", "direction") else "look" for finding in told[said:])
    counts = {f"more {thing}": left[thing] for thing in ("look", "kind", "direction")}
    more = "more " * any(is_unnamed(finding.name) for finding in told[:said])
    parts = [plural(count, thing) for thing, count in counts.items() if count]
    parts += [f"{plural(len(unnamed), f'{more}kind')} without a name"] if unnamed else []
    verb = "differs" if left.total() + len(unnamed) == 1 else "differ"
    return f"{join_words(parts)} {verb}." if parts else ""


def later(finding: Finding) -> str:
    """Return the sentence of a finding behind another sentence that has said of what its shares are."""
    said = finding.sentence.replace(WHOLE, "It ", 1)
    is_of_reference = finding.kind in (*OF_TRAITS, "repeat") and not finding.is_more
    return said.replace(OF_GEN, " here" if is_of_reference else "", 1)


def short(finding: Finding, other: str = "reference") -> str:
    """Return a finding with its share alone: "5 % watermarked", "more “bus” (10 %)", "none noisy (reference 2 %)".

    `other` is what the other set is called.
    """
    if finding.shares is None or finding.kind in ("words", "pair", "sets"):
        return name_alone(finding)
    own, before = finding.say_shares()
    if finding.is_more and finding.kind in (*OF_TRAITS, "copy", "part", "drift"):
        return f"{finding.say_shares(0)[0]} {name_alone(finding)}"
    if finding.is_more and finding.kind == "repeat":
        return f"{percent(finding.shares[0])} repeats ({finding.name})"
    if finding.is_more:
        return f"{name_alone(finding)} ({own})"
    part = "" if finding.shares[0] == 0 else f"{own}, "
    return f"{name_alone(finding)} ({part}{other} {before})"


def name_alone(finding: Finding) -> str:
    """Return a finding without numbers: "watermarked", "darker on average", "no “pizza”"."""
    is_none = finding.shares is not None and finding.shares[0] == 0
    match finding.kind:
        case "look" | "column":
            words = finding.name if finding.kind == "column" else re.split("[,:]", finding.name)[0]
            if finding.shares is None:
                return f"nearly all {words}" if is_nearly_all(finding.share_interval) else f"{words} on average"
            return words if finding.is_more else f"{'none' if is_none else 'fewer'} {words}"
        case "drift":
            since = "" if finding.first_frame is None else f" from frame {finding.first_frame} on"
            return f"{'' if finding.is_more else 'none ' if is_none else 'fewer '}{finding.name}{since}"
        case "repeat":
            return finding.name if finding.is_more else "fewer repeats"
        case "part":
            return with_part(finding.name) if finding.is_more else f"fewer {with_part(finding.name)}"
        case "kind" | "direction":
            return f"{'more' if finding.is_more else 'no' if is_none else 'less'} {_noun(finding)}"
        case "words":
            return (
                f"images of {finding.name if finding.name == 'all prompts' else f'prompts with {quote(finding.name)}'}"
            )
    return finding.words if finding.kind == "metric" else finding.name


def _noun(finding: Finding) -> str:
    """Return the name of a kind in quotation marks, with its id where others have the name; a trait as it is."""
    if finding.name.startswith("samples ") or is_unnamed(finding.name):
        return finding.name
    alike = WITH_ID.fullmatch(finding.name)
    name = alike[1] if alike else finding.name
    noun = quote(name) if finding.kind == "kind" else f"of the direction {quote(name)}"
    return f"{noun}, {alike[2]}" if alike else noun
