"""Findings of a comparison in plain sentences: how different the sets are, in which kinds, and what may be missed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from finc_eval.comparison.direction import Direction, Interval
from finc_eval.comparison.settings import StoredSettings
from finc_eval.core.words import join_words, percent, percent_range, plural
from finc_eval.embeddings.set_info import SetInfo, titles_of
from finc_eval.findings.facts import name_alone, tell
from finc_eval.findings.finding import OF_TRAITS, Finding
from finc_eval.findings.visible import Visible
from finc_eval.naming.evidence import UniqueNames, is_unnamed, read_alike
from finc_eval.naming.looks import Look
from finc_eval.numerics.inference import ALPHA, BESIDE_ALPHA, significant
from finc_eval.partitions.answer import LARGEST
from finc_eval.partitions.kind import Kind
from finc_eval.prompts.result import PromptDifferences
from finc_eval.same_ids.result import ById
from finc_eval.sketches.one_law import Separability

CHANCE = 0.5  # share of samples of two equal sets that a classifier assigns to their set

MAX_WORDS = 45  # words of a headline, signs such as "%" among them
MAX_SENTENCE = 25  # words of a sentence of it


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
    def visible(self) -> Visible | None: ...
    @property
    def explained(self) -> float | None: ...
    @property
    def prompts(self) -> PromptDifferences | None: ...
    @property
    def by_id(self) -> ById | None: ...
    @property
    def looks(self) -> tuple[Look, ...]: ...
    @property
    def findings(self) -> tuple[Finding, ...]: ...
    @property
    def sets_p_value(self) -> float | None: ...
    @property
    def separability(self) -> Separability | None: ...
    @property
    def tested(self) -> int: ...
    @property
    def kinds_tested(self) -> int: ...
    @property
    def local_p_value(self) -> float | None: ...


Compared = _Compared  # a `Comparison`, which imports this module


def says(comparison: Compared) -> dict[str, str]:
    """Return all that was found, the largest first, and then what may have been missed, in at most `MAX_WORDS` words.

    A finding has the id of its kind or direction as its key, or the name of its look. What may have been missed is left
    out first. Two runs with the same ids have sentences of their own, which judge the looks of whole sets; looks of
    parts follow them.
    """
    told = _tell(comparison, _named_findings(comparison))
    if comparison.by_id is not None:
        return comparison.by_id.sentences | told
    told = told or say_apart(comparison)
    if not told:
        return {"nothing": _nothing(comparison)} | _say_ratio(comparison)
    for more in (_say_ratio(comparison), _missed(comparison)):
        if len(" ".join((told | more).values()).split()) <= MAX_WORDS:
            told |= more
    return told


def _named_findings(comparison: Compared) -> list[Finding]:
    """Return the findings that the headline tells itself: not of the sets as a whole, and not of pairs by id.

    Beside pairs by id, it tells no kinds, directions and parts of pictures.
    """
    of_others = () if comparison.by_id is None else of_pairs(comparison.by_id)
    others = ("sets",) if comparison.by_id is None else ("sets", "kind", "direction", "part")
    return [finding for finding in comparison.findings if finding.kind not in others and finding not in of_others]


def counted(comparison: Compared) -> list[str]:
    """Return the names of the findings that the headline only counts, without kinds that have no name."""
    findings = _named_findings(comparison)
    told, _ = tell(findings, MAX_WORDS, MAX_SENTENCE)
    return [name_alone(finding) for finding in findings if finding not in told and not is_unnamed(finding.name)]


def _tell(comparison: Compared, findings: Sequence[Finding]) -> dict[str, str]:
    """Return the facts of findings by key, and how many others there are as "rest"."""
    keys = keys_of(comparison)
    texts, rest = tell(findings, MAX_WORDS, MAX_SENTENCE)
    return {keys[finding]: text for finding, text in texts.items()} | ({"rest": rest} if rest else {})


def keys_of(comparison: Compared) -> dict[Finding, str]:
    """Return the key of each finding: the id of a kind or direction, the name of a look, or "words 1"."""
    heads, keys, words = {heading.children: heading.id for heading in comparison.headings}, dict[Finding, str](), 0
    for finding in comparison.findings:
        words += finding.kind == "words"
        alone = finding.parts[0] if len(finding.parts) == 1 else finding.name
        keys[finding] = heads.get(finding.parts, alone) if finding.kind in ("kind", "direction") else finding.name
        if finding.kind == "words":
            keys[finding] = f"words {words}"
        elif finding.whole and finding.kind in OF_TRAITS:
            keys[finding] = f"whole {finding.name}"
    return keys


def of_pairs(by_id: ById) -> tuple[Finding, ...]:
    """Return what the pairs of two runs show."""
    return by_id.findings


def thing_of(comparison: Compared) -> str:
    """Return what the sets were divided into."""
    return "kind" if comparison.difference is not None or comparison.kinds else "direction"


def p_of_sets(comparison: Compared) -> float | None:
    """Return the p-value of the sets: of their own test, or without it of the shares of kinds."""
    return comparison.difference_p_value if comparison.sets_p_value is None else comparison.sets_p_value


def sets_differ(comparison: Compared) -> bool:
    """Return whether the sets are said to differ, as a whole or in parts of pictures."""
    return any(p is not None and p <= BESIDE_ALPHA for p in (p_of_sets(comparison), comparison.local_p_value))


def say_slight(comparison: Compared, finding: Finding) -> str:
    """Return that the sets differ though nothing names it, in a sentence."""
    p_value, local = p_of_sets(comparison), comparison.local_p_value
    if local is not None and (p_value is None or p_value > BESIDE_ALPHA):
        return f"The pictures differ in their details (p = {local:.2g}), but nothing names how."
    slight = f": {finding.name}" * (comparison.sets_p_value is not None)
    return f"The sets differ (p = {p_of_sets(comparison):.2g}), but no {thing_of(comparison)} does{slight}."


def say_apart(comparison: Compared) -> dict[str, str]:
    """Return that the sets differ though nothing names it, and how well they can be told apart, in sentences."""
    if not (slight := [finding for finding in comparison.findings if finding.kind == "sets"]):
        return {}
    sentences = {"sets": slight[0].text}
    if (apart := comparison.separability) is not None and apart.interval[0] > CHANCE:
        share = f"{percent(apart.value)} [{percent_range(apart.interval, CHANCE)}]"
        classifier = f"A classifier assigns {share} of held-out samples to their set; 50 % is chance."
        sentences["classifier"] = classifier
    return sentences


def _nothing(comparison: Compared) -> str:
    """Return that nothing was found, and what would have been, or how rare a kind may have been missed."""
    if (untested := say_untested(comparison)) is not None:
        return untested
    what = (
        f"No {thing_of(comparison)} differs significantly"
        if p_of_sets(comparison) is None
        else "The sets do not differ significantly"
    )
    few = comparison.detectable is not None and comparison.detectable >= 1
    visible = comparison.visible
    seen = visible.sentence((comparison.gen.n, comparison.ref.n)) if visible is not None and visible.others else ""
    if seen:
        return f"{what}{f'; {TOO_FEW}' if few else '.'} {seen}"
    if comparison.detectable is None:
        return f"{what}."
    return (
        f"{what}; kinds below {percent(comparison.detectable, 1)} may be missed."
        if comparison.detectable < 1
        else f"{what}; {TOO_FEW}"
    )


TOO_FEW = "samples are too few for kinds."  # end of a sentence where no kind could have been found


def _missed(comparison: Compared) -> dict[str, str]:
    """Return how rare a kind may have been missed, or that none was tested, in a sentence; none if nothing is known."""
    if (untested := say_untested(comparison)) is not None:
        return {"untested": untested}
    if comparison.detectable is None:
        return {}
    if comparison.detectable >= 1:
        return {"missed": TOO_FEW.capitalize()}
    return {"missed": f"Kinds below {percent(comparison.detectable, 1)} may be missed."}


def _say_ratio(comparison: Compared) -> dict[str, str]:
    rho = comparison.settings.rho
    return {} if rho == 1 else {"ratio": f"A kind counts above {rho:g} times the other set's share."}


def short(comparison: Compared) -> str:
    """Return in a few words how different the sets are, and how many kinds and looks differ."""
    kinds = [finding for finding in comparison.findings if finding.kind == "kind"]
    more, less = (sum(len(finding.parts) for finding in kinds if finding.is_more is side) for side in (True, False))
    others = len([finding for finding in comparison.findings if finding.kind not in ("kind", "sets")])
    counts = [f"more of {plural(more, 'kind')}"] * bool(more) + [f"less of {plural(less, 'kind')}"] * bool(less)
    counts += [plural(others, "other finding" if kinds else "finding")] * bool(others)
    is_known = comparison.difference is not None and not _is_unknown(comparison)
    return ", ".join([*[f"{_estimate(comparison)} different"] * is_known, *(counts or ["no finding"])])


def more_and_less(kinds: Sequence[Kind]) -> tuple[list[Kind], list[Kind]]:
    """Return the kinds that the generated set has more of, and the kinds that it has less of."""
    more = [kind for kind in kinds if kind.share_difference > 0]
    return more, [kind for kind in kinds if kind.share_difference <= 0]


def drifts(comparison: Compared) -> list[Direction]:
    """Return the directions that differ significantly, which refits find again, and which no kind shows."""
    return [
        direction
        for direction in significant(comparison.directions, ALPHA)
        if direction.firm and not is_shown(comparison, direction)
    ]


def is_shown(comparison: Compared, direction: Direction) -> bool:
    """Return whether a kind shows a direction: it has its best samples, or the same name."""
    kinds = significant(comparison.kinds, ALPHA)
    return direction.shown_by_kinds or any(read_alike(direction, kind) for kind in kinds)


def _estimate(comparison: Compared) -> str:
    assert comparison.difference is not None
    assert comparison.difference_interval is not None
    return f"{percent(comparison.difference)} [{percent_range(comparison.difference_interval)}]"


def details(comparison: Compared) -> dict[str, str]:
    """Return what stands behind the headline, a sentence by key.

    How different the sets are over all kinds, what the kinds explain of it, which directions they do not show, and on
    which of two sets of prompts they differ less.
    """
    told = overall(comparison)
    if "change" in told and significant(comparison.kinds, ALPHA) and comparison.explained is not None:
        part, whole = (f"{100 * amount:.0f}" for amount in (comparison.explained, comparison.difference or 0.0))
        share = "all of it" if part == whole else f"{part} of these {whole} points"
        told |= {"explained": f"The kinds that differ explain {share}."} if whole != "0" else {}
    return told | say_drifts(comparison) | _say_prompt_sets(comparison) | _say_unlooked(comparison)


def _say_prompt_sets(comparison: Compared) -> dict[str, str]:
    """Return on which of two sets of prompts the images differ less, in sentences, where a column names two."""
    if comparison.prompts is None:
        return {}
    titles = dict(zip(("gen", "ref"), titles_of(comparison.gen, comparison.ref), strict=True))
    told = comparison.prompts.say_prompt_sets(titles)
    return {f"prompt sets {place}": sentence for place, sentence in enumerate(told, 1)}


def _say_unlooked(comparison: Compared) -> dict[str, str]:
    """Return that nothing local was looked at, in a sentence, where that is so."""
    if comparison.local_p_value is not None or comparison.settings.rho != 1:
        return {}
    return {"local": "Nothing local in pictures was looked at: both sets need pictures, or cells of their embeddings."}


def say_drifts(comparison: Compared) -> dict[str, str]:
    """Return which directions no kind shows, in a sentence, where there are any."""
    if comparison.explained is None or comparison.looks or not (alone := drifts(comparison)):
        return {}
    names = UniqueNames(comparison.directions)
    more = [f"{len(alone) - LARGEST} more"] if len(alone) > LARGEST else []
    names_alone = join_words([*(names.title(direction) for direction in alone[:LARGEST]), *more])
    what = "A direction differs" if len(alone) == 1 else f"{len(alone)} directions differ"
    shown = "that no kind shows, such as a change of style or quality over many kinds"
    return {"drifts": f"{what} {shown}: {names_alone}."}


def overall(comparison: Compared) -> dict[str, str]:
    """Return how different the shares of kinds are in all, in a sentence, where that is known.

    The key says how sure that is: "change", "uncertain", "chance", or "untested". Where a kind differs, the shares of
    all together are not called equal by chance.
    """
    if comparison.difference is None:
        return {}
    change = f"{_estimate(comparison)} of the samples would have to change kind to make"
    p_value, is_unknown = comparison.difference_p_value, _is_unknown(comparison)
    is_open = comparison.difference_interval is not None and comparison.difference_interval[0] == 0
    if p_value is None:
        key, first = "untested", "A set has too few independent samples to test how different the sets are as a whole"
    elif p_value <= ALPHA and not is_open:
        return {"change": f"About {change} the sets alike."}
    elif p_value <= ALPHA:
        key = "uncertain"
        first = f"Over all kinds together, the shares differ (p = {p_value:.2g}), but by an uncertain amount"
    elif is_unknown or significant(comparison.kinds, ALPHA):
        key, first = "uncertain", "How much the shares of all kinds differ in all is uncertain"
    else:
        key, first = "chance", f"Over all kinds together, the difference is within chance (p = {p_value:.2g})"
    return {key: f"{first}." if is_unknown else f"{first}: an estimated {change} them alike."}


def _is_unknown(comparison: Compared) -> bool:
    """Return whether the interval of the difference leaves everything open, as that of a few samples does."""
    assert comparison.difference_interval is not None
    low, high = comparison.difference_interval
    return round(100 * low) == 0 and round(100 * high) == 100


def say_untested(comparison: Compared) -> str | None:
    """Return that nothing was tested, in a sentence; None if something was."""
    if comparison.tested or comparison.kinds_tested:
        return None
    return "No kind of samples was tested: a set has too few independent samples."
