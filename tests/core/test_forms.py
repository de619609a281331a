"""Names from two machines are matched by their forms: joined where that is unique, else told with an example."""

import unicodedata

import pytest

from finc_eval.core.forms import KnownNames, difference_of_form, join_names, named


def decomposed(text):
    return unicodedata.normalize("NFD", text)


ALIKE = [
    ("café", decomposed("café"), "Unicode form"),
    ("Đặng", decomposed("Đặng"), "Unicode form"),
    ("가", decomposed("가"), "Unicode form"),
    ("cat", "cat ", "spaces"),
    ("cat", "\tcat", "spaces"),
    ("a cat", "a  cat", "spaces"),
    ("a cat", "a\xa0cat", "spaces"),
    ("a cat", "a cat\r", "spaces"),
    ("a cat", "a\u3000cat", "spaces"),
    ("a cat", "a cat\u200b", "spaces"),
    ("cat", "\ufeffcat", "spaces"),
    ("a/b.png", "a\\b.png", "backslashes"),
    ("cat1", "ｃａｔ１", "Unicode form (compatible characters)"),
    ("ﬁsh", "fish", "Unicode form (compatible characters)"),
    ("wait...", "wait…", "Unicode form (compatible characters)"),
    ("it's", "it’s", "quotation marks or dashes"),
    ('the "cat"', "the “cat”", "quotation marks or dashes"),
    ("cat", '"cat"', "quotation marks or dashes"),
    ("cat", "'cat'", "quotation marks or dashes"),
    ("T-shirt", "T–shirt", "quotation marks or dashes"),
    ("7", "7.0", "the way a number is written"),
    ("7.5", "7.50", "the way a number is written"),
    ("-3", "−3.0", "the way a number is written"),
    ("3", "03", "the way a number is written"),
    ("0", "000", "the way a number is written"),
    ("0", "-0.0", "the way a number is written"),
    ("7", "+7", "the way a number is written"),
    ("0.5", ".5", "the way a number is written"),
    ("100000", "1e+05", "the way a number is written"),
    ("0.00001", "1e-05", "the way a number is written"),
    ("1.5e-07", "1.50E-7", "the way a number is written"),
    ("17", "١٧", "the way a number is written"),
    ("9" * 40, "9" * 40 + ".0", "the way a number is written"),
    ("class_3", "class_03", "the way a number is written"),
    ("True", "true", "upper and lower case"),
    ("FALSE", "False", "upper and lower case"),
    ("cat", "Cat", "upper and lower case"),
    ("n01440764", "N01440764", "upper and lower case"),
    ("STRASSE", "straße", "upper and lower case"),
    ("Élan", decomposed("éLAN"), "upper and lower case"),
    ("a cat", "A cat.", "underscores or the full stop at the end"),
    ("hot dog", "hot_dog", "underscores or the full stop at the end"),
]

UNLIKE = [
    ("cat", "cats"),
    ("7", "70"),
    ("7.05", "7.5"),
    ("v1.05", "v1.5"),
    ("5", "-5"),
    ("10", "1"),
    ("1000", "1e3"),  # an identifier
    ("9" * 40, "9" * 39 + "8"),
    ("1e+05", "1e+06"),
    ("e", "é"),
    ("hotdog", "hot dog"),
    ("a-b", "ab"),
    (".", "-"),
    ("1,5", "1.5"),
    ("0.1", "0.10000001"),
    ("a", "а"),  # the second is Cyrillic
]


@pytest.mark.parametrize(("first", "second", "how"), ALIKE)
def test_texts_in_two_forms_are_one_name_and_it_is_said_what_differs(first, second, how):
    assert difference_of_form(first, second) == how
    found = join_names({"gen": {second, "tea"}, "ref": {first, "tea"}}, "label")
    assert found.of([first, second, "tea"]) == [first, first, "tea"]
    (note,) = found.notes
    assert f"differ in {how}" in note and "of gen" in note and "of ref" in note
    assert KnownNames(["tea", first]).place(second) == 1


@pytest.mark.parametrize(("first", "second"), UNLIKE)
def test_other_texts_are_other_names(first, second):
    assert difference_of_form(first, second) is None
    found = join_names({"gen": {second}, "ref": {first}}, "label")
    assert found.of([first, second]) == [first, second] and not found.notes
    assert KnownNames([first]).place(second) is None


@pytest.mark.parametrize(
    ("gen", "ref", "spelling", "told"),
    [
        ({"cat", "Cat"}, {"cat"}, {}, "kept apart"),
        ({"cat", "Cat"}, {"CAT"}, {}, "kept apart"),
        ({"cat", "Cat"}, {"cat", "Cat"}, {}, ""),
        ({"3", "03"}, {"3"}, {}, "kept apart"),
        ({"cat ", "cat"}, {"cat"}, {"cat ": "cat"}, "counts as one"),
        ({"cat ", "cat"}, {"cat ", "cat"}, {"cat": "cat ", "cat ": "cat "}, "counts as one"),
        ({"cat ", "Cat", "cat"}, {"cat"}, {"cat ": "cat"}, "kept apart"),
        ({"Cat", "Dog"}, {"cat", "dog"}, {"Cat": "cat", "Dog": "dog"}, "2 values of label are written"),
        ({""}, {" "}, {}, ""),
    ],
)
def test_names_that_one_set_tells_apart_stay_apart(gen, ref, spelling, told):
    found = join_names({"gen": gen, "ref": ref}, "label")
    assert {len({found.spelling.get(a, a), found.spelling.get(b, b)}) for a, b in spelling.items()} <= {1}
    assert bool(found.spelling) == bool(spelling)
    assert told in " ".join(found.notes) and bool(found.notes) == bool(told)


def test_the_spelling_of_most_sets_stands_for_the_others():
    found = join_names({"a": ["cat"], "b": ["cat"], "ref": ["Cat"]}, "label")
    assert found.spelling == {"Cat": "cat"}


def test_what_a_caller_names_is_found_in_its_form():
    assert named(["CAT", "dog", "fox"], ["cat", "Dog", "dog"]) == ["cat", "dog", "fox"]
