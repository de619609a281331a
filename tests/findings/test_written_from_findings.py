"""Outputs are written from findings alone: a finding that is taken out is in none of them, and a new one is in all."""

import json
from dataclasses import replace

import numpy as np
import pytest
from _quick import MAPS, quick
from _releases import CENTERS, release
from _stored import made_once
from PIL import Image

import finc_eval as fe
from finc_eval import report
from finc_eval.findings.finding import Finding

NEW = Finding("zebra stripes", "look", False, 0.95, 0.0, 0.0001, text="", ids=("0",))


def a_set(n, seed, dark=0, **planted):
    """Samples of kinds with labels, and gray pictures, of which some are dark."""
    rows = release(n, seed, **planted)
    sorts = ((rows[:, None] - CENTERS[None]) ** 2).sum(-1).argmin(1)
    light = np.random.default_rng(seed).integers(90, 160, (n, 16, 16, 3), np.uint8)
    light[:dark] //= 3
    images = [Image.fromarray(one) for one in light]
    return fe.EmbeddingSet(rows, metadata={"label": [f"sort-{one}" for one in sorts]}, images=images)


def compared(_):
    with quick(MAPS):
        return fe.compare(a_set(240, 1, dark=72, lost=1, new=0.2), a_set(240, 2), features=50)


def ranked(_):
    sets = {"bad": a_set(240, 1, dark=72, lost=1, new=0.2), "good": a_set(240, 3)}
    return fe.leaderboard(sets, a_set(240, 2), metrics=["kid"])


def outputs(one, capsys, path):
    """Return every output of a result as text."""
    report.show(one)
    printed = capsys.readouterr().out
    return {
        "headline": one.headline,
        "print": " ".join(printed.split()),
        "repr": repr(one),
        "notebook": one._repr_html_(),
        "page": one.to_html(path / f"{len([*path.iterdir()])}.html").read_text(encoding="utf-8"),
        "Markdown": one.to_markdown(),
        "LaTeX": one.to_latex(),
        "JSON": json.dumps(one.to_dict(), ensure_ascii=False),
    }


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    return made_once(tmp_path_factory, "a comparison with three findings", compared)


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    return made_once(tmp_path_factory, "a board with three findings", ranked)


def test_a_comparison_finds_what_was_planted_each_once(comparison):
    assert {one.name: one.kind for one in comparison.findings} == {"dark": "look", "sort-0": "kind", "sort-20": "kind"}
    sizes = [one.size for one in comparison.findings]
    assert sizes == sorted(sizes, reverse=True)
    for one in comparison.findings:
        assert one.text == one.sentence and one.name in one.text and one.ids and one.p_value < 0.05
        assert (one.interval is not None) == (one.kind == "kind")


DATA = ("JSON", "page")  # have the names of kinds, directions and samples as data


def test_what_is_taken_out_of_the_findings_of_a_comparison_is_in_no_output(comparison, capsys, tmp_path):
    whole = outputs(comparison, capsys, tmp_path)
    for gone in {one.kind: one for one in comparison.findings}.values():
        left = tuple(one for one in comparison.findings if one is not gone)
        texts = outputs(replace(comparison, findings=left), capsys, tmp_path)
        for name, text in texts.items():
            assert gone.name in whole[name], (gone.name, name)
            if name not in DATA:
                assert gone.name not in text, (gone.name, name)
            for one in left:
                assert one.name in text, (one.name, name)
        assert gone.text not in texts["page"]


def test_a_finding_that_is_added_is_in_every_output_of_a_comparison(comparison, capsys, tmp_path):
    for kind in ("look", "metric"):
        added = replace(comparison, findings=(replace(NEW, kind=kind), *comparison.findings))
        for name, text in outputs(added, capsys, tmp_path).items():
            assert NEW.name in text, (kind, name)


def test_a_finding_of_another_name_is_said_by_its_new_name(comparison):
    first, *others = comparison.findings
    renamed = replace(comparison, findings=(replace(first, name="zebra stripes"), *others))
    assert "zebra stripes" in renamed.headline and first.name not in renamed.headline


def test_a_row_of_a_board_has_findings_from_which_its_outputs_are_written(board, capsys, tmp_path):
    bad, good = board["bad"], board["good"]
    assert {one.name for one in bad.findings} == {"dark", "sort-0", "sort-20"} and good.findings == ()
    assert bad.faults == tuple(one.text for one in bad.findings) and bad.fault == "; ".join(bad.faults)
    assert bad.fault_size == max(one.size for one in bad.findings)

    def with_findings(findings):
        return replace(board, rows=tuple(replace(row, findings=findings) if row is bad else row for row in board.rows))

    for gone in {one.kind: one for one in bad.findings}.values():
        left = with_findings(tuple(one for one in bad.findings if one is not gone))
        for name, text in outputs(left, capsys, tmp_path).items():
            assert gone.text not in text and gone.words not in text, (gone.name, name)
    for name, text in outputs(with_findings((NEW, *bad.findings)), capsys, tmp_path).items():
        assert NEW.name in text, name


def test_all_verbs_say_one_share_of_the_same_two_sets(comparison, board):
    bad, ref = a_set(240, 1, dark=72, lost=1, new=0.2), a_set(240, 2)
    verdict = fe.gate(bad, ref, ref, {"appearance": {"part": 0.05}})
    dark = [
        next(one for one in findings if one.name == "dark")
        for findings in (comparison.findings, board["bad"].findings, verdict.findings)
    ]
    assert len({(one.share_gen, one.share_ref, one.share_interval) for one in dark}) == 1
    low, high = dark[0].share_interval
    assert low <= 0.3 <= high < 2 * low


def test_a_table_has_the_lower_end_of_a_wide_interval():
    wide = replace(NEW, share_gen=0.25, share_interval=(0.126, 0.6))
    assert wide.share_cells == ("≥ 12.6", "0.0") and replace(NEW, share_gen=None).share_cells == ("–", "–")


def test_a_kind_whose_samples_all_have_a_look_follows_from_it():
    gen, ref = a_set(160, 1, new=0.2), a_set(160, 2)
    images = [
        image.convert("L").convert("RGB") if label == "sort-20" else image
        for image, label in zip(gen.images_at(np.arange(160)), gen.column("label"), strict=True)
    ]
    columns = {"label": list(gen.column("label"))}
    for metadata in ({}, columns):
        gray = fe.EmbeddingSet(gen.rows_at(np.arange(160)), metadata=metadata, images=images)
        with quick(MAPS):
            found = fe.compare(gray, ref, features=50)
        (look,) = found.looks
        (kind,) = found.significant()
        (said,) = found.findings
        if metadata:  # a label that is new says more than what its pictures look like
            assert (said.name, said.explains, look.kinds) == ("sort-20", (look.name,), ())
        else:
            assert (said.name, said.explains, look.kinds) == (look.name, (kind.id,), (kind.id,))


def test_copies_of_the_reference_are_found_by_pixels_and_by_embeddings():
    ref, others = release(120, 2), release(120, 3)
    others[:18] = ref[:18]
    (found,) = (one for one in fe.compare(others, ref, features=50).findings if one.kind == "copy")
    assert (found.name, found.share_gen, found.share_ref) == ("copies of the reference", 0.15, 0.0)
    assert set(found.ids) <= {str(one) for one in range(18)}
    board = fe.leaderboard({"a": others, "b": release(120, 4)}, ref, metrics=["kid"])
    assert "copies of the reference" in board["a"].fault and "copies" not in board["b"].fault


@pytest.mark.parametrize(("gen", "ref"), [(slice(0, 120), slice(0, 120)), (slice(0, 120), slice(120, 240))])
def test_a_set_that_is_the_reference_itself_and_a_set_without_copies_have_none(gen, ref):
    rows = release(240, 2)
    assert not [one for one in fe.compare(rows[gen], rows[ref], features=50).findings if one.kind == "copy"]


def test_draws_of_a_law_with_few_values_are_no_copies():
    rows = np.random.default_rng(0).integers(0, 2, (240, 3)).astype(np.float32)
    assert not [one for one in fe.compare(rows[:120], rows[120:], features=50).findings if one.kind == "copy"]


def test_a_comparison_of_an_earlier_version_derives_its_findings(comparison, tmp_path):
    data = comparison.to_dict()
    del data["findings"]
    old = fe.Comparison.from_dict(data)
    assert {one.name for one in old.findings} == {one.name for one in comparison.findings}


def test_a_finding_of_an_earlier_board_is_read():
    from finc_eval.core.record import structure

    old = {"name": "1", "what": "kind", "whole": False, "share": 0.0, "before": 0.2, "p_value": 0.001, "parts": ["k1"]}
    assert structure(Finding, old, "a board") == Finding("1", "kind", False, 0.0, 0.2, 0.001, ("k1",))


def test_all_notes_are_printed_in_full(comparison, capsys):
    report.show(comparison)
    printed = " ".join(capsys.readouterr().out.split())
    details = report.outline(comparison).details
    assert details and all(" ".join(sentence.split()) in printed for sentence in details)
