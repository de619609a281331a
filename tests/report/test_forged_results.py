"""Results that somebody sends: what has a form is checked where a result is read, all else is shown as text."""

from copy import deepcopy

import pytest
from _forged import HOSTILE, NAME, faults, kind_of, one_of_each_kind, outputs, plant, planted
from _turns import turn

from finc_eval.core.errors import FincEvalError
from finc_eval.results import RESULTS, result_class

REFUSED = [
    (("provenance", "git", "revision"), "scores", "HEAD", "must be 40 or 64 hexadecimal digits"),
    (("provenance", "versions", "torch"), "audit", "2.8 <b>", "must be a version such as 2.8.0"),
    (("provenance", "versions", "torch", NAME), "sweep", "<b>", "must be the name of a package"),
    (("gen", "digest"), "comparison", "x", "must be up to 64 hexadecimal digits"),
    (("baseline",), "verdict", "x", "must be up to 64 hexadecimal digits"),
    (("signature",), "private-score", "fx:\x1b", "is not a signature: it has control characters"),
    (("kinds", 0, "set_with_most"), "kinds", "x", "kinds.0 names the set 'x', which it does not have: make it again"),
    (("kinds", 0, "set_with_least"), "leaderboard", "x", "names the set 'x', which it does not have"),
    (("kinds", 0, "id"), "comparison", "x", "names the kind 'k"),
    (("headings", 0, "children", 0), "comparison", "x", "names the kind 'x', which it does not have"),
    (("kinds", 0, "children", 0), "comparison", "x", "names the kind 'x', which it does not have"),
    (("kinds", 0, "shares", "gen", NAME), "comparison", "x", "names the set "),
    (("sets", "ref", NAME), "leaderboard", "x", "names the set 'ref', which it does not have"),
    (("rows", 0, "name"), "leaderboard", "x", "names the set 'model 2', which it does not have"),
    (("rank_by",), "leaderboard", "x", "names the number 'x', which it does not have"),
    (("criteria", 0, "key"), "leaderboard", "x", "names the number "),
    (("criteria", 0, "names", 0), "leaderboard", "x", "names the model 'x', which it does not have"),
    (("limits", 0, "shares", "gen", NAME), "verdict", "x", "names the set "),
    (("limits", 0, "examples", "gen", NAME), "verdict", "x", "names the set 'x', which it does not have"),
    (("changes", 0, "kind", "shares", "new", NAME), "changes", "x", "names the set "),
    (("kinds", 0, "space"), "spaces", "x", "names the space 'x', which it does not have"),
    (("kinds", 0, "id"), "spaces", "x", "names the kind 'x', which it does not have"),
    (("missing", "audit", NAME), "evaluation", "x", "names the part 'x', which it does not have"),
    (("groups", 0, "modes", "finc", 0), "methods", "x", "has groups that do not match its directions"),
]


@pytest.mark.parametrize(("place", "name", "text", "told"), REFUSED, ids=lambda one: None)
def test_a_text_without_its_form_is_refused_where_a_result_is_read(place, name, text, told, documents):
    data = documents[name].to_dict()
    result_class(name).from_dict(data)
    with pytest.raises(FincEvalError) as error:
        result_class(name).from_dict(planted(data, place, text), "forged.json")
    assert str(error.value).startswith("forged.json") and told in str(error.value)


@pytest.mark.parametrize("text", [HOSTILE, "x --><b>", "0" * 15 + "\n", "0" * 17, 5])
def test_a_job_that_is_not_a_digest_is_left_out_of_every_output(text, documents):
    data = planted(documents["scores"].to_dict(), ("provenance", "job"), text)
    result = result_class("scores").from_dict(data)
    assert result.provenance.job is None
    for form, made in outputs(result).items():
        assert [*faults(form, made)] == [], form


def read(name, data):
    """Return a result, or None if it is refused by a sentence."""
    try:
        return result_class(name).from_dict(data)
    except FincEvalError:
        return None


TOGETHER = 8
"""Forged texts of a result that is read at once."""

NESTED = ("methods", "spaces", "sweep", "evaluation")
"""Types that hold whole comparisons: the tests of them take long."""


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.long] * (one in NESTED)) for one in RESULTS])
def test_texts_of_others_are_text_in_every_output(name, documents):
    """All texts that are taken are hostile at once."""
    data, taken = documents[name].to_dict(), 0
    left = [(path, f"{number} {HOSTILE}") for number, path in enumerate(one_of_each_kind(data, only_texts=True))]
    while left:
        for count in (TOGETHER, 1):  # some are refused
            more = deepcopy(data)
            for path, text in left[:count]:
                plant(more, path, text)
            if read(name, more) is not None:
                data, taken = more, taken + count
                break
        left = left[count:]
    assert taken > 2
    for form, text in outputs(result_class(name).from_dict(data)).items():
        assert [*faults(form, text)] == [], form


TEXTS = (HOSTILE, "x", "", "w" * 100_000)


@pytest.mark.long
@pytest.mark.parametrize("name", RESULTS)
def test_each_text_is_refused_or_shown(name, documents):
    """Each place has one of four texts. They take turns, so that four landings try them all."""
    whole = documents[name].to_dict()
    for text, paths in by_text(one_of_each_kind(whole)):
        left = [path for path in paths if read(name, planted(whole, path, text)) is not None]
        left.sort(key=lambda path: (path[-1] is NAME, -len(path)))  # what is below a name has it still
        while left:
            for count in (TOGETHER, 1):  # some are refused together: a table has no name twice
                data = deepcopy(whole)
                for path in left[:count]:
                    plant(data, path, text)
                if (result := read(name, data)) is not None:
                    break
            for form, made in outputs(result).items():
                assert [*faults(form, made)] == [], (form, [*map(kind_of, left[:count])], text[:20])
            left = left[count:]


def by_text(paths):
    """Yield each text with the places that have it in this turn."""
    for number, text in enumerate(TEXTS):
        yield text, paths[(number - turn()) % len(TEXTS) :: len(TEXTS)]
