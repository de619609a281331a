"""Findings in, sentences of a headline out: names of all that differs before any count."""

from dataclasses import replace

import pytest

from finc_eval.findings.facts import tell
from finc_eval.findings.finding import Finding


def look(name, gen, ref, whole=False):
    if whole:
        return Finding(name, "look", True, None, None, 0.01, text=f"The generated set is on average {name}.")
    own, other = f"{100 * gen:.0f} % of the generated set is {name}", f"{100 * ref:.0f} % of the reference is {name}"
    text = f"{own} (reference {100 * ref:.0f} %)." if gen >= ref else f"{other}, but none of the generated set."
    return Finding(name, "look", False, gen, ref, 0.01, text=text)


def kind(name, gen, ref, thing="kind"):
    shown = name if name.startswith("unnamed") else f"kind “{name}”"
    text = f"The {shown} is {gen * 100:.1f} % of the generated set (reference {ref * 100:.1f} %)."
    return Finding(name, thing, False, gen, ref, 0.01, text=text)


REPEAT = Finding(
    "one picture, 40 times", "repeat", False, 0.02, 0.0, 0.01,
    text="2 % of the generated set is one picture, 40 times (reference 0 %).",
)  # fmt: skip
COPIES = Finding("copies of the reference", "copy", False, 0.03, 0.0, None, text="3 % of the generated set are copies.")
WORDS = Finding("seven", "words", False, None, None, 0.01, text="Images of prompts with “seven” differ in content.")
GRAY, MARK, BLUR = look("gray, without color", 0.3, 0.01), look("watermarked", 0.05, 0.0), look("blurred", 0.03, 0.0)
PIZZA, BUS, DOG = kind("pizza", 0.0, 0.05), kind("bus", 0.1, 0.05), kind("dog", 0.01, 0.04)
UNNAMED = [kind(f"unnamed kind k{number}", 0.04, 0.01) for number in range(1, 5)]
FIRST = "30 % of the generated set is gray, without color (reference 1 %)."
MANY = [look(f"look{number}", 0.3 - number / 100, 0.0) for number in range(20)]

UNSURE = [replace(look(name, 0.3 - place / 100, 0.0), share_interval=(0.12, 0.6)) for place, name in enumerate("abcd")]
NEAR = Finding("near copies of the reference", "copy", False, 0.129, 0.0, 0.001)

CASES = {
    "shares whose least is known": (
        [GRAY, MARK, NEAR, UNSURE[3]],
        f"{FIRST} 5 % is watermarked (reference 0 %). Also at least 12 % near copies of the reference, at least 12 % "
        "d.",
    ),
    "one": ([GRAY], FIRST),
    "two": ([GRAY, BUS], f"{FIRST} The kind “bus” is 10.0 % (reference 5.0 %)."),
    "a list from the third on": (
        [GRAY, BUS, MARK, BLUR],
        f"{FIRST} The kind “bus” is 10.0 % (reference 5.0 %). Also 5 % watermarked, 3 % blurred.",
    ),
    "kinds in the list": (
        [GRAY, MARK, BUS, PIZZA, DOG],
        f"{FIRST} 5 % is watermarked (reference 0 %). Also more “bus” (10.0 %), no “pizza” (reference 5.0 %), less "
        "“dog” (1.0 %, reference 4.0 %).",
    ),
    "a kind with a name that another has": (
        [GRAY, MARK, kind("bus (k12)", 0.1, 0.05)],
        f"{FIRST} 5 % is watermarked (reference 0 %). Also more “bus”, k12 (10.0 %).",
    ),
    "a kind by a trait": (
        [GRAY, MARK, kind("samples that are darker", 0.1, 0.05)],
        f"{FIRST} 5 % is watermarked (reference 0 %). Also more samples that are darker (10.0 %).",
    ),
    "repeats, copies and words": (
        [GRAY, MARK, REPEAT, COPIES, WORDS],
        f"{FIRST} 5 % is watermarked (reference 0 %). Also 2 % repeats (one picture, 40 times), 3 % copies of the "
        "reference. Images of prompts with “seven” differ in content.",
    ),
    "words of prompts where words run out": (
        [GRAY, MARK, *MANY[:4], WORDS, *MANY[4:8]],
        f"{FIRST} 5 % is watermarked (reference 0 %). Also 30 % look0, 29 % look1, 28 % look2, 27 % look3, images of "
        "prompts with “seven”, look4, look5, look6, look7.",
    ),
    "a look that is gone": (
        [look("noisy", 0.0, 0.02)], "2 % of the reference is noisy, but none of the generated set.",
    ),
    "a look that is gone, second": (
        [GRAY, look("noisy", 0.0, 0.02)], f"{FIRST} 2 % of the reference is noisy, but none here.",
    ),
    "a look that is gone, third": (
        [GRAY, MARK, look("noisy, with specks", 0.0, 0.02)],
        f"{FIRST} 5 % is watermarked (reference 0 %). Also none noisy (reference 2.0 %).",
    ),
    "repeats of the reference, third": (
        [GRAY, MARK, replace(REPEAT, share_gen=0.0, share_ref=0.02)],
        f"{FIRST} 5 % is watermarked (reference 0 %). Also fewer repeats (reference 2.0 %).",
    ),
    "whole sets": (
        [look("darker", 0, 0, whole=True), look("blurrier", 0, 0, whole=True), look("redder", 0, 0, whole=True)],
        "The generated set is on average darker. It is on average blurrier. Also redder on average.",
    ),
    "words first, which have no share": (
        [WORDS, GRAY, MARK], f"Images of prompts with “seven” differ in content. {FIRST} Also 5 % watermarked.",
    ),
    "kinds without names after all names": (
        [GRAY, *UNNAMED[:2], MARK], f"{FIRST} 5 % is watermarked (reference 0 %). 2 kinds without a name differ.",
    ),
    "one kind without a name": (
        [GRAY, MARK, UNNAMED[0]], f"{FIRST} 5 % is watermarked (reference 0 %). 1 kind without a name differs.",
    ),
    "kinds without names alone": (
        UNNAMED,
        "The unnamed kind k1 is 4.0 % of the generated set (reference 1.0 %). The unnamed kind k2 is 4.0 % (reference "
        "1.0 %). 2 more kinds without a name differ.",
    ),
    "names without shares where words run out": (
        [GRAY, *MANY[:10]],
        f"{FIRST} 30 % is look0 (reference 0 %). Also 29 % look1, 28 % look2, 27 % look3, 26 % look4, 25 % look5, "
        "24 % look6, 23 % look7, look8, look9.",
    ),
    "a count where names do not fit": (
        [GRAY, *(look(f"long look {number}", 0.2, 0.0) for number in range(20)), DOG, UNNAMED[0]],
        f"{FIRST} Also {', '.join(f'long look {number}' for number in range(6))}. "
        "14 more looks, 1 more kind and 1 kind without a name differ.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_findings_become_a_headline(case):
    findings, headline = CASES[case]
    texts, rest = tell(findings, 45, 25)
    assert " ".join([*texts.values(), *[rest] * bool(rest)]) == headline


@pytest.mark.parametrize("count", range(24))
def test_a_headline_keeps_to_its_words_whatever_it_tells(count):
    findings = [GRAY, *(look(f"very long look {number}", 0.2, 0.0) for number in range(count))]
    texts, rest = tell(findings, 45, 25)
    said = " ".join([*texts.values(), rest])
    assert len(said.split()) <= 45 and all(len(sentence.split()) <= 25 for sentence in said.split(". "))
    assert [*texts] == findings[: len(texts)] and bool(rest) == (len(texts) < len(findings))
