"""All members of a kind: as ids, and in the folder of pages beside the page of a result."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from _pages import Page, noise
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import UsageError
from finc_eval.demo.planted import planted_sets
from finc_eval.gallery.members import FOLDED_PICTURES, Members, fold_members


@pytest.fixture(scope="module")
def digits():
    """Digits with planted kinds."""
    return [one.images[::24] for one in planted_sets()]


@pytest.fixture(scope="module")
def result(digits):
    return fe.compare(*(fe.extract(images, "pixels") for images in digits), features=60, modes=2)


@pytest.fixture(scope="module")
def written_once(result, digits, tmp_path_factory):
    """The page of a result and the folder beside it, by the command line; no test changes it."""
    tmp_path = tmp_path_factory.mktemp("written")
    for name, images in zip(("gen", "ref"), digits, strict=True):
        np.savez(tmp_path / f"{name}.npz", images)
    result.save(tmp_path / "c.h5")
    given = [f"--samples={name}={tmp_path / name}.npz" for name in ("gen", "ref")]
    done = CliRunner().invoke(app, ["report", str(tmp_path / "c.h5"), "--gallery", *given])
    assert done.exit_code == 0, done.output
    return tmp_path


@pytest.fixture
def written(written_once, tmp_path):
    """A copy of it, for a test."""
    return shutil.copytree(written_once, tmp_path, dirs_exist_ok=True)


def test_python_writes_the_same_folder_as_the_command(written, tmp_path):
    given = {name: tmp_path / f"{name}.npz" for name in ("gen", "ref")}
    assert fe.load(tmp_path / "c.h5").to_html(tmp_path / "p.html", samples=given, gallery=True) == tmp_path / "p.html"
    names = {path.name for path in (tmp_path / "p-members").iterdir()}
    assert names == {path.name for path in (written / "c-members").iterdir()}
    with pytest.raises(UsageError, match="has no kinds with a map"):
        fe.metrics(*np.random.default_rng(0).normal(size=(2, 40, 4)), ["rke"]).to_html(
            tmp_path / "m.html", gallery=True
        )
    assert not (tmp_path / "m.html").exists()


def member_page(folder, name):
    return Page((folder / "c-members" / f"mode-{name}.html").read_text(encoding="utf-8"))


def test_each_kind_look_and_direction_has_a_page_and_a_link_to_it(result, written):
    files = {path.name for path in (written / "c-members").iterdir()}
    assert len(files) == len(result.kinds) + len(result.headings) + len(result.looks) + len(result.directions)
    text = (written / "c.html").read_text(encoding="utf-8")
    links = re.findall(r'href="(c-members/[^"]*)"', text)
    assert {name.removeprefix("c-members/") for name in links} == files
    for name in files:
        back = re.search(r'href="\.\./c\.html#([^"]*)"', (written / "c-members" / name).read_text(encoding="utf-8"))
        assert f'id="{back[1]}"' in text


def test_a_page_has_all_members_of_both_sets_with_their_pictures_from_typical_to_odd(result, written):
    for kind in result.kinds:
        page = member_page(written, kind.id)
        shown = [page.attributes(one)["alt"] for one in page.find("img")]
        members = result.members(kind.id)
        assert shown == [*members["gen"], *members["ref"]]
        assert [len(members[label]) for label in ("gen", "ref")] == [kind.shares[label].count for label in members]
        odd = dict(zip(zip(result.map.sets, result.map.ids, strict=True), result.map.oddness.tolist(), strict=True))
        for label, ids in members.items():
            assert [odd[label, name] for name in ids] == sorted(odd[label, name] for name in ids)
        copied = [text.split() for text in page.texts("code", inside=page.find("pre")[0])]
        assert copied == [[*members["gen"]]]


def test_each_card_of_a_kind_has_all_its_members_folded_with_small_pictures_and_ids(result, digits, tmp_path):
    page = Page(result.to_html(tmp_path / "c.html").read_text(encoding="utf-8"))
    small = 0
    for kind in result.kinds:
        (fold,) = page.find("details", "members", page.section(kind))
        copied = [text.split() for text in page.texts("code", inside=fold)]
        assert copied == [[*ids] for ids in result.members(kind.id).values() if ids]
        assert page.text(fold).startswith("All members: ")
        pictures = [page.attributes(n) for n in page.find("img", inside=fold)]
        assert {one["alt"] for one in pictures} <= {id for ids in copied for id in ids}
        assert all(one["src"].startswith("data:image/") and int(one["width"]) <= 48 for one in pictures)
        small += len(pictures)
    assert 100 < small <= FOLDED_PICTURES
    assert all("open" not in page.attributes(n) for n in page.find("details", "members"))  # so paper leaves them out


def legends(page):
    return [page.text(page.find("p", "legend", fold)[0]) for fold in page.find("details", "members")]


def test_a_fold_says_how_many_members_are_shown_and_nothing_of_pictures_that_are_not_at_hand(result, tmp_path):
    page = Page(result.to_html(tmp_path / "c.html").read_text(encoding="utf-8"))
    for fold, legend in zip(page.find("details", "members"), legends(page), strict=True):
        listed = sum(len(ids.split()) for ids in page.texts("code", inside=fold))
        shown, told = len(page.find("img", inside=fold)), re.search(r"(\d+) of them are shown", legend)
        assert int(told[1]) == shown < listed if told else shown in (0, listed)
    bare = fe.compare(*np.random.default_rng(0).normal([[[0.0]], [[1.0]]], size=(2, 300, 8)), features=60)
    page = Page(bare.to_html(tmp_path / "b.html").read_text(encoding="utf-8"))
    assert legends(page) and not any("shown" in legend or "small pictures" in legend for legend in legends(page))


def test_the_page_of_a_loaded_result_has_the_same_members_folded(result, tmp_path):
    result.save(tmp_path / "c.h5")
    assert fe.load(tmp_path / "c.h5").to_html(tmp_path / "l.html").read_text() == result.to_html(
        tmp_path / "c.html"
    ).read_text().replace("c.html", "l.html")


def test_a_page_that_is_too_large_has_fewer_members_folded_before_cards_lose_pictures(result, tmp_path, monkeypatch):
    pages = [result.to_html(tmp_path / "c.html").read_text(encoding="utf-8")]
    monkeypatch.setattr("finc_eval.report.MAX_PAGE", len(pages[0]) - 1)
    pages.append(result.to_html(tmp_path / "s.html").read_text(encoding="utf-8"))
    whole, small = map(Page, pages)
    assert len(small.find("img")) < len(whole.find("img"))
    for kind in result.kinds:
        assert len(small.shown(small.section(kind))) == len(whole.shown(whole.section(kind)))


@pytest.mark.parametrize(
    ("ids", "counts", "pictures", "summary", "pictured", "bounds"),
    [
        ({"a": 3, "b": 0}, {"a": 3, "b": 0}, 400, "All members: 3 of A", {"A": 3}, []),
        ({"a": 3, "b": 2}, {"a": 3, "b": 2}, 4, "All members: 3 of A and 2 of B", {"A": 3, "B": 1}, ["60", "4"]),
        ({"a": 2000, "b": 80}, {"a": 5000, "b": 80}, 300, "Members: 500 of the 5,000 of A and 80 of B",
         {"A": 60, "B": 60}, ["500", "60", "300"]),
        ({"a": 8}, None, 0, "Members: 8 of A", {"A": 0}, []),
    ],
)  # fmt: skip
def test_a_fold_is_bounded_and_says_of_how_many_members_it_has_which(ids, counts, pictures, summary, pictured, bounds):
    names = {label: [f"{label}{n}" for n in range(count)] for label, count in ids.items()}
    fold = fold_members([Members("k1", "", "", names, counts)], {"a": "A", "b": "B"}, pictures)["k1"]
    assert fold.summary == summary
    assert re.findall(r"\d+", f"{fold.described} {fold.bound}") == bounds
    assert {title: len(shown) for title, (_, shown) in fold.pictured.items()} == pictured
    assert all(len(listed) <= 500 for listed in fold.ids.values())
    for title, (label, shown) in fold.pictured.items():
        if len(shown) > 1:  # from the most typical to the oddest
            assert (shown[0], shown[-1]) == (fold.ids[title][0], fold.ids[title][-1]), label


def test_two_sets_of_one_name_have_their_own_members_folded(result):
    same = replace(
        result, gen=replace(result.gen, name="x", source=None), ref=replace(result.ref, name="x", source=None)
    )
    kind = max(result.kinds, key=lambda one: min(share.count for share in one.shares.values()))
    assert same.folds[kind.id].ids == {label: ids for label, ids in result.members(kind.id).items() if ids}


def test_a_direction_has_no_members_folded_as_some_of_its_typical_samples_are_no_members():
    assert fold_members([Members("over-1", "", "", {"a": ["x"]}, are_members=False)], {"a": "A"}) == {}


def test_without_a_gallery_no_page_leads_to_a_folder(result, tmp_path):
    assert "members/" not in result.to_html(tmp_path / "c.html").read_text(encoding="utf-8")


def test_a_page_has_at_most_a_thousand_members(result, digits, tmp_path, monkeypatch):
    monkeypatch.setattr("finc_eval.partitions.pages.members.MOST_MEMBERS", 20)
    result.save(tmp_path / "c.h5")
    assert CliRunner().invoke(app, ["report", str(tmp_path / "c.h5"), "--gallery"]).exit_code == 0
    kind = max(result.kinds, key=lambda one: one.shares["gen"].count)
    page = member_page(tmp_path, kind.id)
    assert len(page.texts("code", inside=page.find("pre")[0])[0].split()) == 10


def test_members_of_directions_and_looks_are_what_the_result_keeps(result):
    for one in result.directions:
        assert result.members(one.id) == {"gen": one.typical("gen"), "ref": one.typical("ref")}
    for one in result.looks:
        other = {"gen": "ref", "ref": "gen"}[one.more_in]
        assert result.members(one.name) == {one.more_in: one.examples[one.more_in], other: ()}
    with pytest.raises(fe.UsageError, match="has no kind 'k9999'"):
        result.members("k9999")


def test_a_gallery_refuses_what_has_no_map_another_form_and_foreign_files(result, written):
    def refused(*arguments):
        done = CliRunner().invoke(app, ["report", *map(str, arguments), "--gallery"])
        assert done.exit_code == 3
        return str(done.exception or "") + done.output + done.stderr

    assert "leave out --format md" in refused(written / "c.h5", "--format", "md")
    alone = (written / "c.json").rename(written / "alone.json")  # without its .h5 file
    assert "has no map: load its .h5 file" in refused(alone)
    foreign = next((written / "c-members").iterdir())
    foreign.write_text("mine")
    assert "did not make it" in refused(written / "c.h5") and foreign.read_text() == "mine"


def test_an_atlas_has_the_paths_of_samples_in_a_folder_that_is_given(tmp_path):
    for name, label in (("gen", "g"), ("ref", "r")):
        (tmp_path / name).mkdir()
        for place, image in enumerate(noise(len(name + label), 30, 12)):
            Image.fromarray(image // (1 + place % 2)).save(tmp_path / name / f"{place}.png")
    given = {name: tmp_path / name for name in ("gen", "ref")}
    fe.compare(*(fe.extract(one, "pixels") for one in given.values()), features=30).save(tmp_path / "c.h5")
    loaded = fe.load(tmp_path / "c.h5")
    assert loaded.to_atlas().path.isna().all()
    frame = loaded.to_atlas(samples=given)
    assert frame.path.tolist() == [str(given[row.set] / row.id) for row in frame.itertuples()]
