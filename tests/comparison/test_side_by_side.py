"""What several comparisons side by side share: titles of the sets, signatures, warnings, directions by row."""

import json
from dataclasses import replace

import pytest

import finc_eval as fe
from finc_eval.comparison.side_by_side import SideBySide
from finc_eval.core.marks import checksum_of
from finc_eval.demo import example_sets
from finc_eval.report import outline


def in_two_folders(comparison):
    """Return a comparison as that of two folders of one name."""
    gen, ref = (
        replace(info, name="imgs", source=f"{place}/imgs")
        for info, place in ((comparison.gen, "a"), (comparison.ref, "b"))
    )
    return replace(comparison, gen=gen, ref=ref)


def of_sweep():
    found = fe.sweep(*example_sets(100), "rho", [1, 2], features=50, modes=3)
    return replace(found, points=tuple(replace(one, comparison=in_two_folders(one.comparison)) for one in found.points))


def of_names(found):
    return replace(found, comparisons={name: in_two_folders(one) for name, one in found.comparisons.items()})


def of_methods():
    return of_names(fe.compare_methods(*example_sets(100), ["finc", "rarity"], features=50, modes=3))


def of_spaces():
    gen, ref = ({"upper": one[:, :392], "lower": one[:, 392:]} for one in example_sets(100))
    return of_names(fe.compare(gen, ref, features=50, modes=3))


@pytest.mark.parametrize("make", [of_sweep, of_methods, of_spaces])
def test_rows_of_each_type_share_sets_signatures_warnings_and_directions(make):
    found = make()
    assert isinstance(found, SideBySide) and len(found.rows) == 2
    said, comparisons = outline(found), [*found.rows.values()]
    # Two folders of one name are two sets, by as much of their paths as makes them differ.
    assert said.title.startswith("a/imgs against b/imgs") and said.sets == {"a/imgs": 100, "b/imgs": 100}
    assert said.signatures == [*dict.fromkeys(one.signature for one in comparisons)]
    assert {one for one, _ in found.directions} == {name for name, one in found.rows.items() if one.directions}
    assert [one for _, one in found.directions] == [one for each in comparisons for one in each.directions]
    assert found.all_warnings == tuple(dict.fromkeys(text for each in comparisons for text in each.warnings))


@pytest.mark.parametrize("make, empty", [(of_sweep, {"points": []}), (of_methods, {"comparisons": {}, "groups": []})])
def test_a_file_without_a_comparison_is_refused_in_one_sentence(make, empty, tmp_path):
    found = make()
    found.to_json(tmp_path / "found.json")
    data = json.loads((tmp_path / "found.json").read_text()) | empty
    (tmp_path / "found.json").write_text(json.dumps(data | {"checksum": checksum_of(data)}))
    with pytest.raises(fe.DataError, match=r"found\.json.* has no comparison"):
        fe.load(tmp_path / "found.json")
