"""Names in sentences: as few words as tell a mode from all others of its result, and never the same for two."""

from dataclasses import replace

import pytest
from _pages import OVER, SEVENS, THREES, UNDER, named

from finc_eval.naming.evidence import Name, UniqueNames, with_id


@pytest.mark.parametrize(
    ("mode", "words", "few"),
    [
        (THREES, "“3”", "3"),
        (SEVENS, "“7 and 9”", "7 and 9"),
        (OVER, "samples of over-aaaaaa", "over-aaaaaa"),
        (
            named(OVER, "brighter, bluer", ("trait", "brighter"), ("trait", "bluer")),
            "samples that are “brighter, bluer”",
            "brighter, bluer",
        ),
        (named(OVER, "looks like tabby (60 %)", ("classifier", "tabby")), "samples that look like “tabby”", "tabby"),
        (named(OVER, "partly 3 (40 %)", ("label", "3")), "samples that are partly “3”", "partly 3"),
        (
            named(OVER, "prompt with “a dog” (70 %)", ("prompt", "a dog")),
            "“prompt with ‘a dog’”",
            "prompt with “a dog”",
        ),
    ],
)
def test_kinds_are_named_in_few_words(mode, words, few):
    names = UniqueNames([mode])
    assert names.kind(mode) == words
    assert names.words(mode) == few and not names.is_shared(mode)
    assert names.title(mode) == mode.title


@pytest.mark.parametrize(
    ("text", "source", "noun"),
    [
        ("brighter", "trait", "samples that are brighter"),
        ("3", "label", "3"),
        ("mostly 3 (94 %)", "label", "3"),
        ("looks like tabby (60 %)", "classifier", "tabby"),
        (None, "trait", ""),
    ],
)
def test_a_trait_is_an_adjective_and_other_names_are_nouns(text, source, noun):
    mode = named(OVER, text, (source, text or "brighter"))
    assert Name(text, mode.evidence).noun == noun


def test_modes_of_one_short_name_are_told_apart_by_their_traits():
    traits = (("trait", "darker"), ("trait", "sharper"))
    dark, sharp = (named(OVER, f"mostly 1 (90 %), {value}", ("label", "1"), (one, value)) for one, value in traits)
    sharp = replace(sharp, id="over-sharp")
    assert UniqueNames([dark]).words(dark) == "1"
    names = UniqueNames([dark, sharp])
    assert [names.words(mode) for mode in (dark, sharp)] == ["1, darker", "1, sharper"]
    assert [names.kind(mode) for mode in (dark, sharp)] == ["“1, darker”", "“1, sharper”"]
    assert [names.title(mode) for mode in (dark, sharp)] == [dark.name, sharp.name]


def test_modes_of_one_name_are_told_apart_by_their_ids_whatever_their_shares_and_the_order_of_the_parts():
    one = named(OVER, "mostly 3 (94 %), brighter", ("label", "3"), ("trait", "brighter"))
    two = replace(one, id="over-2", name="mostly 3 (61 %), brighter")
    dim = named(UNDER, "darker, with less contrast", ("trait", "darker"), ("trait", "with less contrast"))
    also = replace(dim, id="under-2", name="with less contrast, darker")
    names = UniqueNames([one, two, dim, also, SEVENS])
    assert names.kind(one) == "“3”, over-aaaaaa" and names.kind(two) == "“3”, over-2"
    assert names.title(two) == "mostly 3 (61 %), brighter, over-2" and names.words(two) == "3"
    assert names.kind(dim) == "samples that are “darker, with less contrast”, under-bbbbbb"
    assert names.words(also) == "with less contrast, darker" and names.is_shared(also)
    assert names.kind(SEVENS) == "“7 and 9”" and not names.is_shared(SEVENS)


def test_a_name_that_traits_do_not_tell_from_another_has_its_id():
    plain, bright = (replace(one, name=name) for one, name in ((UNDER, "mostly 3 (80 %)"), (THREES, THREES.name)))
    names = UniqueNames([plain, bright])
    assert [names.kind(one) for one in (plain, bright)] == ["“3”, under-bbbbbb", "“3, brighter”"]
    assert [names.title(one) for one in (plain, bright)] == [plain.name, bright.name]


def test_examples_differ_in_their_words_within_and_between_groups():
    again = replace(THREES, id="over-2", name="mostly 3 (51 %), brighter")
    less = replace(THREES, id="under-3", name="mostly 3 (99 %), brighter")
    names = UniqueNames([THREES, again, less, SEVENS, OVER])
    assert names.examples([[THREES, again, OVER], [less, SEVENS]], 2) == [[THREES, OVER], [SEVENS]]
    assert names.examples([[THREES, OVER, SEVENS]], 2) == [[THREES, OVER]]


def test_a_name_of_traits_keeps_them_whatever_else_is_known():
    mode = named(OVER, "greener, sharper", ("classifier", "monarch"), ("trait", "greener"), ("trait", "sharper"))
    names = UniqueNames([mode])
    assert names.kind(mode) == "samples that are “greener, sharper”" and names.words(mode) == "greener, sharper"


def test_tables_have_names_with_ids():
    assert with_id(THREES) == "mostly 3 (94 %), brighter, k1" and with_id(UNDER) == "under-bbbbbb"


def test_a_noun_is_the_name_that_a_headline_says():
    mode = named(OVER, "mostly 1 (97 %), darker, flatter", ("label", "1"), ("trait", "darker"), ("trait", "flatter"))
    assert Name(mode.name, mode.evidence).noun == UniqueNames([mode]).words(mode) == "1"
