"""The map of a gate: the places of the reference stay, new releases are placed on it, and what changed is in color."""

import re

import pytest
from _releases import release

import finc_eval as fe
from finc_eval.gates.baseline import History


def maps_of(verdict, tmp_path):
    text = verdict.to_html(tmp_path / "gate.html").read_text()
    found = re.findall(r'<svg class="map small-map".*?<title>Map of (\w+)</title>(.*?)</svg>', text, re.DOTALL)
    return {label: [re.findall(rf'<g class="{look}"', svg) for look in ("gen", "gen less")] for label, svg in found}


def test_releases_that_are_judged_by_one_reference_have_the_same_places(passed, failed):
    assert passed.map.xy == failed.map.xy and passed.map.digest == failed.map.digest == passed.tree.digest
    assert passed.map.shares["baseline"] == failed.map.shares["baseline"]
    assert passed.map.shares["gen"] != failed.map.shares["gen"]
    for shares in failed.map.shares.values():
        assert len(shares) == len(failed.map.xy) <= 256 and sum(shares) == pytest.approx(1, abs=1e-2)


def test_what_a_release_lost_is_empty_and_what_is_new_is_filled(passed, failed, tmp_path):
    lost = [one for one in failed.map.changes if one.share < one.before]
    new = [one for one in failed.map.changes if one.share > one.before]
    assert lost and lost[0].share == 0 and new and new[0].before == 0 and new[0].share > 0.03
    for label, (filled, empty) in maps_of(failed, tmp_path).items():
        assert label in ("ref", "baseline", "gen") and len(filled) == len(new) and len(empty) == len(lost)
    at = [place for place, kind in enumerate(failed.map.kinds) if kind == lost[0].id]
    assert sum(failed.map.shares["gen"][place] for place in at) < 0.01
    assert sum(failed.map.shares["baseline"][place] for place in at) > 0.04
    same = [[], []]
    assert not passed.map.changes and maps_of(passed, tmp_path) == {"ref": same, "baseline": same, "gen": same}


def test_an_unchanged_release_lies_where_the_release_before_it_lay(sets, policy, passed):
    again = fe.gate(sets["same"], sets["same"], sets["ref"], policy)
    assert again.map.xy == passed.map.xy
    assert again.map.shares["gen"] == again.map.shares["baseline"] == passed.map.shares["gen"]


def test_a_map_is_kept_by_a_history_and_in_json(sets, policy, passed, tmp_path):
    folder = tmp_path / "releases"
    first = fe.gate(sets["old"], None, sets["ref"], policy, first=True)
    History.open(folder).promote(first, sets["old"], reason="first")
    # Another reference of the same samples in part: the places are those of the kinds that the history keeps.
    later = fe.gate(sets["same"], folder, release(500, 9), policy)
    assert first.map is None and later.map.xy == passed.map.xy
    assert later.map.shares["ref"] != passed.map.shares["ref"]
    assert fe.Verdict.from_dict(later.to_dict()).map == later.map


def test_a_gate_without_limits_on_lost_kinds_has_no_map(sets, tmp_path):
    verdict = fe.gate(sets["same"], sets["old"], sets["ref"], {"kinds": {"moved": 0.5}})
    assert verdict.map is None and not maps_of(verdict, tmp_path)
