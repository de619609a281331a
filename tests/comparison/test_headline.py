"""The headline: what a comparison found, in plain sentences of at most 45 words."""

import re
from dataclasses import replace

import pytest
from _pages import LESS, MORE, OVER, SAME, THREES, UNDER, a_comparison, a_kind, a_mode, named
from _said import values, values_by_key

from finc_eval.comparison.headline import MAX_SENTENCE, MAX_WORDS, TOO_FEW, details, drifts, overall, sets_differ
from finc_eval.core.words import join_words, percent_range, plural
from finc_eval.naming.evidence import LOOKS_LIKE, SLIGHT, Evidence
from finc_eval.naming.looks import Look
from finc_eval.numerics.inference import BESIDE_ALPHA
from finc_eval.partitions.kind import top_level
from finc_eval.partitions.pages.kinds import say_missed
from finc_eval.partitions.tests import Mix
from finc_eval.sketches.one_law import Separability

BOTH = (MORE, LESS, SAME)
EQUAL = {"difference": 0.01, "difference_interval": (0.0, 0.04), "difference_p_value": 0.4, "sets_p_value": 0.4}
APART = Separability(0.77, (0.72, 0.81), {})


def many(count, **changes):
    return [a_kind(f"k{i}", 0.1 - i / 1000, 0.01, **changes) for i in range(1, count + 1)]


def a_look(name, gen, ref, whole=False, kinds=()):
    return Look(name, whole, "gen", gen, ref, 0.001, name, 1.0, 0.0, {"gen": (), "ref": ()}, kinds)


BLURRED, DARKER = a_look("blurred", 0.26, 0.01, kinds=("k1",)), a_look("darker", 0.8, 0.2, whole=True)
OF_MORE, OF_LESS, OF_LOOK, MISSED = {"k1": "k1 13.1 4.0"}, {"k2": "k2 2.0 10.0"}, {"blurred": "26 1"}, {"missed": "1.9"}
NOTHING = {"nothing": "1.9"}

CASES = {  # kinds, other entries of a comparison, and the facts that its headline has: names, ids, numbers by key
    "nothing": ([SAME], EQUAL, NOTHING),
    "nothing, nothing known of what is missed": ([SAME], {**EQUAL, "detectable": None}, {"nothing": ""}),
    "nothing, in too few samples": ([SAME], {**EQUAL, "detectable": 1.0}, {"nothing": ""}),
    "no test of the sets": ([SAME], {**EQUAL, "sets_p_value": None, "difference_p_value": None}, NOTHING),
    "sets just above their level": ([SAME], {**EQUAL, "sets_p_value": BESIDE_ALPHA * 1.01}, NOTHING),
    "shares of kinds just significant, sets not": ([SAME], {**EQUAL, "difference_p_value": 0.001}, NOTHING),
    "a slight change of all": (
        [SAME], {**EQUAL, "sets_p_value": 0.002, "separability": APART},
        {"sets": "0.002", "classifier": "77 72 81 50"} | MISSED,
    ),
    "a change that a classifier may guess": (
        [SAME], {**EQUAL, "sets_p_value": 0.002, "separability": Separability(0.53, (0.48, 0.58), {})},
        {"sets": "0.002"} | MISSED,
    ),
    "sets without a test of their own": ([SAME], {"difference_p_value": 0.001}, {"sets": "0.001"} | MISSED),
    "two kinds": ([*BOTH], {}, OF_MORE | OF_LESS | MISSED),
    "a kind by its label": ([named(MORE, "mostly 3 (94 %)")], {}, {"k1": "“3” 13.1 4.0"} | MISSED),
    "a kind by what it looks like": (
        [named(MORE, f"{LOOKS_LIKE}jellyfish (80 %)")], {}, {"k1": "like “jellyfish” 13.1 4.0"} | MISSED,
    ),
    "a long name": (
        [named(MORE, "one two three four five six seven")], {},
        {"k1": "“one two three four five…” 13.1 4.0"} | MISSED,
    ),
    "a look, and no kind": ([SAME], {**EQUAL, "looks": (BLURRED,)}, OF_LOOK | MISSED),
    "a look that explains the kind": ([MORE, SAME], {"looks": (BLURRED,)}, OF_LOOK | MISSED),
    "a look and another kind": ([*BOTH], {"looks": (BLURRED,)}, OF_LOOK | OF_LESS | MISSED),
    "a large kind before a small look": (
        [named(MORE, "mostly 3 (94 %)")], {"looks": (a_look("gray", 0.06, 0.01),)},
        {"k1": "“3” 13.1 4.0", "gray": "6 1"} | MISSED,
    ),
    "a small look before a large kind without a name": (
        [MORE], {"looks": (a_look("gray", 0.06, 0.01),)}, {"gray": "6 1"} | OF_MORE | MISSED,
    ),
    "a look of all before a larger kind": (
        [*BOTH], {"looks": (BLURRED, DARKER)}, {"whole darker": ""} | OF_LOOK | MISSED,
    ),
    "more kinds without names than two": (
        many(5), {}, {"k1": "k1 9.9 1.0", "k2": "k2 9.8 1.0", "rest": "3"} | MISSED,
    ),
    "a kind by its name before those without": (
        [*many(1), a_kind("k8", 0.095, 0.01), a_kind("k9", 0.09, 0.01), named(a_kind("k7", 0.02, 0.1), "3 (94 %)")], {},
        {"k7": "“3” 2.0 10.0", "k1": "k1 9.9 1.0", "rest": "2"} | MISSED,
    ),
}  # fmt: skip
KEYS = {key for _, _, facts in CASES.values() for key in facts}


def facts_of(found):
    """Return what the headline says of kinds, of looks, and of all that a case asks for; other facts may stand beside.

    Names, ids and numbers by key, in order.
    """
    wanted = KEYS | {one.id for one in (*found.kinds, *found.headings, *found.directions)}
    wanted |= {f"{'whole ' * one.whole}{one.name}" for one in found.looks}
    return [(key, one) for key, one in values_by_key(found.says).items() if key in wanted]


NO_KINDS = dict.fromkeys(("difference", "difference_interval", "difference_p_value", "detectable"))


@pytest.mark.parametrize(
    ("over", "under", "facts"),
    [
        (
            [OVER],
            [named(UNDER, "mostly 7 (60 %)", ("label", "7"))],
            {OVER.id: f"{OVER.id} 13.1 4.0", UNDER.id: "“7” 2.0 10.0"},
        ),
        ([a_mode("over-1", p_value=0.4)], [], {"nothing": ""}),
        ([a_mode("over-x", stability=0.2)], [], {"nothing": ""}),
    ],
    ids=["two", "not significant", "not stable"],
)
def test_without_kinds_the_headline_names_directions(over, under, facts):
    found = a_comparison(over, under, **NO_KINDS)
    assert facts_of(found) == [*facts.items()]
    assert all("direction" in found.says[key] and "kind" not in found.says[key] for key in facts)


UNDER_A_HEADING = [((), ["k9"]), (("k1",), ["k2"]), (("k2", "k1"), [])]  # kinds that a look explains, and the others


@pytest.mark.parametrize(("covered", "told"), UNDER_A_HEADING)
def test_of_a_heading_with_a_kind_that_a_look_explains_the_other_kinds_are_told(covered, told):
    kinds = [a_kind("k1", 0.13, 0.04), a_kind("k2", 0.12, 0.05), SAME]
    heading = a_kind("k9", 0.25, 0.09, children=("k1", "k2"))
    look = a_look("in color", 0.52, 0.0, kinds=covered)
    found = facts_of(a_comparison(kinds=kinds, headings=[heading], looks=(look,)))
    assert [key for key, _ in found if re.match(r"k\d", key)] == told and found[0] == ("in color", "52 0")


@pytest.mark.parametrize(("kinds", "is_named"), [(("k1",), False), ((), True)])
def test_a_kind_that_follows_from_a_look_is_not_called_by_another_look(kinds, is_named):
    softer = replace(MORE, name="softer", evidence=(Evidence("trait", "softer", 0.9, 0.1, 0.001, True),))
    found = a_comparison(kinds=[softer, LESS, SAME], looks=(a_look("blurred", 0.26, 0.01, kinds=kinds),))
    text = found.to_markdown() + found._repr_html_()
    assert ("softer" in text, "blurred" in text) == (is_named, True)


def test_two_kinds_of_one_name_never_read_the_same():
    alike = [replace(THREES, id=f"k1{i}", difference=0.1 - i / 100) for i in range(2)]
    told = a_comparison(kinds=alike).says
    assert values(told["k10"]).startswith("“3” k10 13.1") and values(told["k11"]).startswith("“3” k11")


@pytest.mark.parametrize("case", CASES)
def test_the_headline_says_what_was_found(case):
    kinds, changes, facts = CASES[case]
    assert facts_of(a_comparison(kinds=kinds, **changes)) == [*facts.items()]


@pytest.mark.parametrize(("p_value", "of"), [(0.4, "sets"), (None, "kind")])
def test_nothing_is_said_of_what_was_tested_alone(p_value, of):
    tested = {**EQUAL, "sets_p_value": p_value, "difference_p_value": p_value, "detectable": None}
    told = a_comparison(kinds=[SAME], **tested).says["nothing"]
    assert of in told and ({"sets": "kind", "kind": "sets"}[of]) not in told


def test_samples_that_are_too_few_for_kinds_are_named_so():
    for kinds in ([SAME], [*BOTH]):
        for detectable, expected in ((1.0, True), (0.019, False)):
            found = a_comparison(kinds=kinds, **{**EQUAL, "detectable": detectable})
            assert (TOO_FEW in found.headline.lower()) == expected


@pytest.mark.parametrize("p_value", [0.002, None])
def test_a_change_without_a_name_is_called_slight_where_the_sets_have_a_test(p_value):
    found = a_comparison(kinds=[SAME], difference_p_value=0.001, sets_p_value=p_value)
    assert (SLIGHT in found.says["sets"]) == (p_value is not None)


def checked(headline):
    """Assert what holds for every headline: its words, its sentences, and that it says once of what its shares are."""
    assert len(headline.split()) <= MAX_WORDS and headline.count("generated set") <= 1
    for sentence in re.split(r"(?<=[.])\s+(?=[A-Z0-9])", headline):
        assert len(sentence.split()) <= MAX_SENTENCE, sentence


@pytest.mark.parametrize("case", CASES)
def test_every_sentence_is_short(case):
    kinds, changes, _ = CASES[case]
    checked(a_comparison(kinds=kinds, **changes).headline)


TOP = a_look("brighter at the bottom than at the top", 0.3, 0.1)
LONG = [named(kind, f"{LOOKS_LIKE}a very long name, number {kind.id[1:]} (70 %)") for kind in many(9)]


@pytest.mark.parametrize("looks", [(), (BLURRED,), (DARKER, BLURRED, TOP)])
@pytest.mark.parametrize("rho", [1.0, 2.0])
def test_what_may_be_missed_is_left_out_first(looks, rho):
    found = a_comparison(kinds=LONG, looks=looks)
    told = replace(found, settings=replace(found.settings, rho=rho))
    checked(told.headline)
    first, *_ = facts_of(told)
    assert first[0] not in ("nothing", "rest", "ratio", "missed")
    assert ("missed" in told.says) == (DARKER in looks)  # which explains all kinds


def test_nothing_found_takes_a_short_sentence():
    for case in CASES:
        told = a_comparison(kinds=CASES[case][0], **CASES[case][1]).says
        assert len(told.get("nothing", "").split()) <= 13


@pytest.mark.parametrize("p_value", [BESIDE_ALPHA * 0.99, BESIDE_ALPHA * 1.01])
def test_sets_are_called_alike_by_their_own_test_alone(p_value):
    for kinds in ([SAME], [*BOTH]):
        found = a_comparison(kinds=kinds, **{**EQUAL, "sets_p_value": p_value})
        assert sets_differ(found) == (p_value < BESIDE_ALPHA)
        assert ("nothing" in found.says) == (p_value > BESIDE_ALPHA and kinds == [SAME])


@pytest.mark.parametrize(
    ("ends", "null", "says"),
    [
        ((0.094, 0.151), 0.0, "9, 15"),
        ((0.0, 0.24), 0.0, "0, 24"),
        ((0.003, 0.24), 0.0, "0.3, 24"),
        ((1.19e-7, 0.24), 0.0, "0.00001, 24"),
        ((0.5003, 0.81), 0.5, "50.03, 81"),
        ((0.44, 0.4996), 0.5, "44, 49.96"),
    ],
)
def test_an_interval_does_not_print_a_value_that_it_leaves_out(ends, null, says):
    assert percent_range(ends, null) == says


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({}, {"change": "12 9 15"}),
        (EQUAL, {"chance": "0.4 1 0 4"}),
        (
            {"difference": 0.14, "difference_interval": (0.0, 0.24), "difference_p_value": 0.0312},
            {"uncertain": "0.031 14 0 24"},
        ),
        ({"difference": 0.2, "difference_interval": (0.0, 0.7), "difference_p_value": None}, {"untested": "20 0 70"}),
        ({**EQUAL, "kinds": [*BOTH]}, {"uncertain": "1 0 4"}),
        ({**EQUAL, "difference_interval": (0.0, 1.0)}, {"uncertain": ""}),
        ({**EQUAL, "difference_interval": (0.0, 1.0), "difference_p_value": 0.01}, {"uncertain": "0.01"}),
        ({"difference": None}, {}),
    ],
)
def test_over_all_kinds_the_page_says_how_much_would_have_to_change(changes, facts):
    told = overall(a_comparison(**{"kinds": [SAME], **changes}))
    assert values_by_key(told) == facts
    assert "chance" in told or "chance" not in " ".join(told.values())


def test_kinds_of_sets_say_what_may_be_missed_in_full():
    assert say_missed(None) == {}
    assert values_by_key(say_missed(1.0)) == {"missed": ""}
    assert "too few" in say_missed(1.0)["missed"] and "too few" not in say_missed(0.019)["missed"]
    assert values_by_key(say_missed(0.019)) == {"missed": "1.9"}


def test_behind_the_headline_stands_how_much_of_the_difference_the_kinds_explain():
    told = values_by_key(details(a_comparison(kinds=BOTH)))
    assert next(iter(told)) == "change" and told["explained"] == "9 12"


@pytest.mark.parametrize("kinds", [[MORE, SAME], [SAME]])
def test_a_direction_that_no_kind_shows_stands_behind_the_headline(kinds):
    """A slow change of brightness over all kinds is a finding, too."""
    drift = replace(OVER, name="brighter", kinds=("k1", "k3"))
    assert "drifts" in details(a_comparison([drift], kinds=kinds))
    shown = replace(drift, shown_by_kinds=True)
    assert "drifts" not in details(a_comparison([shown], kinds=kinds))


def test_what_was_not_tested_is_not_said_to_be_alike():
    found = a_comparison(kinds=[SAME], difference_p_value=None, detectable=None, tested=0, kinds_tested=0)
    assert "tested" in found.says["nothing"] and "differ" not in found.headline


def test_a_mild_and_a_noise_generator_read_differently():
    mild, noise = (
        a_comparison(kinds=many(10), difference=value, difference_interval=(value - 0.02, min(value + 0.02, 1)))
        for value in (0.05, 0.99)
    )
    assert repr(mild) != repr(noise)


def test_only_significant_kinds_are_told_headings_in_place_of_theirs_and_the_largest_difference_first():
    small, large, weak = a_kind("k1", 0.1, 0.08), a_kind("k2", 0.1, 0.4), a_kind("k3", 0.7, 0.1, p_value=0.06)
    heading = replace(a_kind("k9", 0.3, 0.1), children=("k1", "k7"))
    assert [kind.id for kind in top_level([small, large, weak], [])] == ["k2", "k1"]
    assert [kind.id for kind in top_level([small, large, weak], [heading])] == ["k2", "k9"]
    told = facts_of(a_comparison(kinds=[small, large, weak], headings=[heading]))
    assert [key for key, _ in told if key.startswith("k")] == ["k2", "k9"]
    assert dict(told)["k9"].startswith("k9 30")


def test_two_kinds_of_one_name_do_not_read_the_same():
    first, second = named(MORE, "mostly 3 (94 %)"), named(LESS, "mostly 3 (71 %)")
    told = dict(facts_of(a_comparison(kinds=[first, second])))
    assert (told["k1"], told["k2"]) == ("“3” k1 13.1 4.0", "“3” k2 2.0 10.0")


@pytest.mark.parametrize(("difference", "points"), [(0.2, "9 20"), (0.08, "")])
def test_kinds_explain_no_more_than_there_is(difference, points):
    found = a_comparison(kinds=BOTH, difference=difference, difference_interval=(0.01, 0.3))
    assert values(details(found)["explained"]) == points
    assert found.explained <= found.difference
    alike = a_comparison(kinds=[SAME])
    assert "explained" not in details(alike) and alike.explained == 0


@pytest.mark.parametrize(
    ("directions", "names"),
    [
        ([OVER], "over-aaaaaa"),
        ([OVER, replace(UNDER, shown_by_kinds=True)], "over-aaaaaa"),
        ([OVER, UNDER], "2 over-aaaaaa under-bbbbbb"),
        ([replace(OVER, id=f"over-{i}") for i in range(5)], "5 over-0 over-1 over-2 2"),
    ],
)
def test_directions_that_no_kind_shows_are_told_as_drifts(directions, names):
    assert values(details(a_comparison(directions, [], BOTH))["drifts"]) == names
    assert drifts(a_comparison(directions))[0].id == directions[0].id


def test_a_direction_with_the_name_of_a_kind_that_differs_is_not_told_again():
    direction = named(OVER, "mostly 3 (60 %)", ("label", "3"))
    for kind, is_told in (
        (named(MORE, "mostly 3 (94 %)"), False),
        (named(MORE, "mostly 4 (94 %)"), True),
        (MORE, True),
    ):
        found = a_comparison([direction], kinds=[kind, SAME])
        assert bool(drifts(found)) == is_told == ("drifts" in details(found))


@pytest.mark.parametrize("changes", [{"p_value": 0.06}, {"stability": 0.4}, {"shown_by_kinds": True}])
def test_a_direction_that_is_unsure_or_that_kinds_show_is_no_drift(changes):
    one = replace(OVER, **changes)
    assert drifts(a_comparison([one])) == [] and "drifts" not in details(a_comparison([one], [], BOTH))


def test_a_ratio_other_than_one_is_said():
    found = a_comparison(kinds=BOTH)
    doubled = replace(found, settings=replace(found.settings, rho=2.0))
    assert values(doubled.says["ratio"]) == "2" and "ratio" not in found.says


def test_the_repr_is_short_and_json_has_the_headline():
    found = a_comparison([OVER], [UNDER], BOTH)
    first, *kinds = repr(found).split("\n")
    assert first == (
        "Comparison(1,200 generated, 3,400 reference, pixels@1234: 12 % [9, 15] different, more of 1 kind, "
        "less of 1 kind)"
    )
    said = ["  too many samples of the unnamed kind k1", "  lacks samples of the unnamed kind k2"]
    assert [line.split(" (")[0] for line in kinds] == said
    assert found.to_dict()["headline"] == found.headline


@pytest.mark.parametrize(
    ("gen", "ref", "side", "says"),
    [
        (0.05, 0.05, "gen", "On the same prompts, the kind “3” is 3.0 points more frequent than in the reference."),
        (0.06, 0.05, "ref", "On the same prompts, the kind “3” is 3.0 points less frequent than in the reference."),
        (0.06, 0.05, "gen", "The kind “3” is 6.0 % of the generated set (reference 5.0 %)."),
    ],
)
def test_shares_that_hide_a_difference_on_the_same_prompts_are_not_said_in_its_place(gen, ref, side, says):
    mix = Mix(gen - ref, gen - ref - 0.03, (-0.05, 0.01))
    kind = a_kind("k1", gen, ref, set_with_most=side, difference=0.03, interval=(0.01, 0.05), mix=mix)
    assert a_comparison(kinds=[named(kind, "mostly 3 (94 %)", ("label", "3")), SAME]).says["k1"] == says


def test_the_repr_counts_nothing_that_is_not_there():
    unknown = {"difference": 0.0, "difference_interval": (0.0, 1.0)}
    for kinds, changes, summary in (
        ([SAME], EQUAL, "1 % [0, 4] different, no finding"),
        ([SAME], {**EQUAL, "looks": (BLURRED,)}, "1 % [0, 4] different, 1 finding"),
        ([LESS], {"looks": (BLURRED, DARKER)}, "12 % [9, 15] different, 2 findings"),
        ([LESS], unknown | {"looks": (BLURRED,)}, "less of 1 kind, 1 other finding"),
    ):
        assert repr(a_comparison(kinds=kinds, **changes)).partition("\n")[0].endswith(f": {summary})")


def test_words_have_the_right_plural():
    assert (plural(1, "sample"), plural(0, "sample"), plural(1200, "sample")) == (
        "1 sample", "0 samples", "1,200 samples",
    )  # fmt: skip
    assert [join_words(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
