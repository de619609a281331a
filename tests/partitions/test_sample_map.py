"""A map keeps neighbors, knows no set, and shows in color what is significant and nothing else."""

import re

import numpy as np
import pytest
import torch
from _pages import Page
from _quick import BOARDS, ROTATIONS, YARDSTICKS, quick
from sklearn.manifold import trustworthiness

import finc_eval as fe
from finc_eval.core.errors import DataError, UsageError
from finc_eval.demo.planted import planted_sets, shipped_digits
from finc_eval.numerics.neighbor_embedding import embed_neighbors, place_between
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.pages.map_labels import Label, place_labels, shorten_names
from finc_eval.partitions.sample_map import MAP_SAMPLES, Layout, labeled

EACH = 8  # every eighth picture of the planted sets


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    """Maps have all steps."""
    with quick(BOARDS, ROTATIONS, YARDSTICKS):
        yield


@pytest.fixture(scope="module")
def digits():
    images, labels = shipped_digits()
    return torch.from_numpy(images.reshape(-1, 784).astype(np.float32) / 255), labels


@pytest.fixture(scope="module")
def planted():
    """Digits with planted kinds, as embeddings of 7 × 7 × 3 pixels with their pictures."""

    def embedded(one):
        small = one.images.reshape(-1, 7, 4, 7, 4, 3).mean((2, 4)).reshape(len(one.images), -1).astype(np.float32)
        return fe.EmbeddingSet(small[::EACH] / 255, images=one.images[::EACH])

    gen, ref = planted_sets()
    return embedded(gen), embedded(ref)


@pytest.fixture(scope="module")
def comparison(planted):
    return fe.compare(*planted, features=60)


@pytest.fixture(scope="module")
def halves(planted):
    """The comparison of two halves of one set."""
    _, ref = planted
    return fe.compare(ref.select(range(0, ref.n, 2)), ref.select(range(1, ref.n, 2)), features=60)


def drawn(found, tmp_path):
    """The page, and the map on it."""
    text = found.to_html(tmp_path / "page.html").read_text()
    return text, re.search(r'<svg class="map.*?</svg>', text, re.DOTALL)[0]


def colored(svg):
    """Cards of the kinds whose cells are in color."""
    return set(re.findall(r'<g class="(?:gen|ref|model-\d)(?: less)?" data-mode="([^"]+)"', svg))


def test_neighbors_of_digits_stay_neighbors(digits):
    rows, _ = digits
    tree = KindTree.fit(rows)
    xy, x = Layout.of(tree)(rows[:1500])
    plane = x[:, :2].numpy()
    assert trustworthiness(x, xy, n_neighbors=10) > 0.93 > trustworthiness(x, plane, n_neighbors=10) + 0.1
    assert trustworthiness(xy, x, n_neighbors=10) > 0.94


def test_the_same_tree_has_the_same_layout_whatever_the_threads(digits):
    rows, _ = digits
    tree = KindTree.fit(rows[:1000])
    first, before = Layout.of(tree)(rows[:100])[0], torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert torch.equal(Layout.of(tree).places, Layout.of(tree).places)
        assert torch.equal(Layout.of(tree)(rows[:100])[0], first)
    finally:
        torch.set_num_threads(before)


def test_a_map_by_the_kinds_of_an_earlier_comparison_has_its_places(planted, comparison):
    gen, ref = planted
    later = fe.compare(gen.select(range(0, gen.n, 2)), ref, features=60, kinds=comparison).map
    before = dict(zip(zip(comparison.map.sets, comparison.map.ids, strict=True), comparison.map.xy, strict=True))
    shared = [row for row, key in enumerate(zip(later.sets, later.ids, strict=True)) if key in before]
    assert len(shared) > 200
    places = [before[later.sets[row], later.ids[row]] for row in shared]
    assert np.allclose(later.xy[shared], places, atol=1e-6)


FEW = {
    "one point": np.zeros((1, 3)),
    "two points": np.eye(2, 5),
    "four points": np.eye(4),
    "five points": np.eye(5),
    "on a line": np.arange(40.0)[:, None],
    "all equal": np.ones((30, 4)),
    "of one axis and far": np.append(np.zeros(30), 1e6)[:, None],
}


@pytest.mark.parametrize("points", FEW.values(), ids=FEW)
def test_any_points_have_finite_places(points):
    points = torch.from_numpy(points).float()
    places = embed_neighbors(points)
    assert places.shape == (len(points), 2) and places.isfinite().all() and places.abs().max() <= 1
    assert place_between(points, points, places).isfinite().all()


def test_a_map_has_a_bounded_number_of_samples_of_both_sets(comparison):
    found = comparison.map
    assert found.xy.shape == (len(found.ids), 2) and len(found.ids) == len(found.sets) == len(found.kinds)
    assert set(found.sets) == {"gen", "ref"} and abs(found.xy).max() <= 1
    assert len(set(zip(found.sets, found.ids, strict=True))) == len(found) <= MAP_SAMPLES + 100
    assert found.weights[np.array(found.sets) == "gen"].sum() == pytest.approx(1)


def test_samples_of_large_sets_are_drawn_from_both_alike(monkeypatch):
    monkeypatch.setattr("finc_eval.partitions.sample_map.MAP_SAMPLES", 400)
    rng = np.random.default_rng(0)
    found = fe.compare(rng.normal(size=(900, 8)), rng.normal(size=(250, 8)), features=20, modes=1).map
    assert 200 <= found.sets.count("gen") < 250 and 200 <= found.sets.count("ref") < 250


def test_planted_kinds_are_in_color_with_their_names_and_pictures(comparison, tmp_path):
    text, svg = drawn(comparison, tmp_path)
    significant = {f"mode-{kind.id}" for kind in comparison.significant()}
    assert len(significant) > 3 and colored(svg) == significant
    assert svg.count("<image ") >= 5 and svg.count("<text ") >= 5 and "<title>" in svg and "<desc>" in svg
    assert len(svg) < 150_000 and "<script" not in svg and "style=" not in svg
    assert 'class="beside"' in text and "As a table" in text
    Page(text)  # elements are nested as they should be


def test_halves_of_one_set_are_grey(halves, tmp_path):
    assert not halves.significant()
    _, svg = drawn(halves, tmp_path)
    assert not colored(svg) and "Everything is grey" in svg


def test_a_loaded_comparison_has_its_map_and_its_atlas(comparison, tmp_path):
    comparison.save(tmp_path / "a.h5")
    found = fe.load(tmp_path / "a.h5")
    assert np.array_equal(found.map.xy, comparison.map.xy) and found.map.ids == comparison.map.ids
    frame, own = found.to_atlas(), comparison.to_atlas()
    assert {"x", "y", "set", "kind", "id", "picture", "neighbors"} <= set(frame.columns)
    assert frame.drop(columns=["picture", "path"]).equals(own.drop(columns=["picture", "path"]))
    assert frame.picture.notna().sum() > 50
    assert drawn(found, tmp_path)[1] == drawn(comparison, tmp_path)[1]
    assert "svg" in found._repr_html_() and 'class="map' in found._repr_html_()
    with pytest.raises(DataError, match=r"no map: load its \.h5 file"):
        fe.load(tmp_path / "a.json").to_atlas()


def test_an_atlas_has_the_kinds_of_the_list_and_near_neighbors(comparison, planted):
    frame = comparison.to_atlas(thumbnails=True)
    assert frame.picture.notna().all()
    gen = frame[frame.set == "gen"]
    listed = [comparison.kinds[place].id for place in comparison.assign(planted[0].rows_at(np.array(gen.id, int)))]
    assert gen.kind.tolist() == listed
    near = np.array([one["ids"][0] for one in frame.neighbors])
    assert (frame.kind.values[near] == frame.kind.values).mean() > 0.7
    assert all(one["distances"] == sorted(one["distances"]) for one in frame.neighbors)


def test_the_widget_of_embedding_atlas_takes_an_atlas_and_gives_a_set_back(comparison, planted):
    widget = pytest.importorskip("embedding_atlas.widget").EmbeddingAtlasWidget
    frame = comparison.to_atlas()
    shown = widget(frame, x="x", y="y", text="name", neighbors="neighbors")
    shown._predicate = "significant AND \"set\" = 'gen'"
    chosen = shown.selection()
    assert len(chosen) == ((frame.set == "gen") & frame.significant).sum()
    assert planted[0].select(chosen.id).n == len(chosen)


def test_a_selection_is_a_set_with_its_columns_and_pictures(planted):
    gen, ref = planted
    some = fe.EmbeddingSet(gen.rows_at(np.arange(50)), metadata={"n": [*range(50)]}, images=gen._images[:50])
    chosen = some.select(["30", 4, *range(40, 50)] * 2)
    assert chosen.ids_between(0, 3) == ["4", "30", "40"] and chosen.column("n")[:2] == ["4", "30"]
    assert np.array_equal(chosen.images_at(np.array([1]))[0], gen._images[30])
    with pytest.raises(UsageError, match="has no sample '77'"):
        some.select(["77"])
    assert fe.kinds(gen.select(range(60)), ref.select(range(60))).shares["gen"].sum() == pytest.approx(1)


def test_sketches_have_a_map_and_comparisons_without_kinds_have_none(planted):
    without = fe.compare(*planted, features=30, method=fe.Finc(clusters=False))
    ref = fe.Sketch.of(planted[1], without.feature_map)
    assert fe.compare(fe.Sketch.of(planted[0], ref), ref).map.sets.count("gen") > 125
    assert without.map is None
    with pytest.raises(DataError, match="has no map"):
        without.to_atlas()


def some_labels(rng, count, width, height, bare=None):
    """Labels of things of three points each."""
    return [Label(width, height, at + rng.uniform(-8, 8, (3, 2)), bare) for at in rng.uniform(50, 350, (count, 2))]


def test_labels_lie_on_the_drawing_and_not_on_each_other():
    rng = np.random.default_rng(0)
    labels = some_labels(rng, 12, 60, 50)
    boxes = place_labels(labels, (400, 400), rng.uniform(0, 400, (300, 2)), rng.random(300))
    found = [one.box for one in boxes if one is not None]
    assert len(found) >= 10
    for place, one in enumerate(found):
        assert min(one.left, one.top) >= 0 and max(one.left + one.width, one.top + one.height) <= 400
        for other in found[:place]:
            apart = abs(one.left - other.left) >= 60 or abs(one.top - other.top) >= 50
            assert apart
    alone = np.full((1, 2), 5.0)
    assert place_labels([Label(390, 390, alone)] * 2, (400, 400), np.zeros((0, 2)), np.zeros(0))[1] is None


def test_a_label_stands_beside_what_it_names_with_a_short_line():
    rng, lengths = np.random.default_rng(2), []
    for _ in range(10):
        labels = some_labels(rng, 6, 80, 40)
        placed = place_labels(labels, (400, 400), np.zeros((0, 2)), np.zeros(0))
        for label, one in ((label, one) for label, one in zip(labels, placed, strict=True) if one is not None):
            box, (x, y) = one.box, label.points.T
            covered = (x > box.left) & (x < box.left + box.width) & (y > box.top) & (y < box.top + box.height)
            assert not covered.any()
            assert one.point in [tuple(each) for each in label.points]
            lengths.append(np.hypot(*np.subtract(one.point, one.end)))
    assert len(lengths) > 55 and np.median(lengths) < 15


def test_a_label_that_costs_too_much_is_left_out():
    cells = np.stack(np.meshgrid(np.arange(0, 400, 10.0), np.arange(0, 400, 10.0)), -1).reshape(-1, 2)
    label = Label(60, 50, np.full((1, 2), 200.0))
    for most, is_there in ((np.inf, True), (40, False)):
        placed = place_labels([label._replace(most=most)], (400, 400), cells, np.full(len(cells), 5.0))
        assert (placed[0] is not None) is is_there


def test_no_line_to_a_label_crosses_another_label_and_a_label_without_room_loses_its_picture():
    rng, lost = np.random.default_rng(1), 0
    for _ in range(3):
        labels = some_labels(rng, 12, 90, 70, 30)
        found = place_labels(labels, (400, 400), rng.uniform(0, 400, (300, 2)), rng.random(300))
        placed = [one for one in found if one is not None]
        for one in placed:
            line = np.linspace(one.point, one.end, 50)
            for other in (other.box for other in placed if other is not one):
                low, high = (other.left, other.top), (other.left + other.width, other.top + other.height)
                assert not ((line > low) & (line < high)).all(1).any()
        lost += sum(one.box.height == 30 for one in placed)
    assert 0 < lost < 30


NAMES = {
    "short": (["gray"], [["gray"]]),
    "two lines": (["blurrier, with less contrast"], [["blurrier, with less", "contrast"]]),
    "the middle is left out": (
        ["looks like a barn spider on a web at night"],
        [["looks like a barn", "…on a web at night"]],
    ),
    "what differs at the end stays": (
        ["looks like a barn on a green hill, gray", "looks like a barn on a green hill, blurred"],
        [["looks like a barn on", "a green hill, gray"], ["looks like a barn on", "…green hill, blurred"]],
    ),
    "what differs in the middle stays": (
        ["looks like a barn spider that sits on a web", "looks like a barn owl that sits on a web"],
        [["…spider that sits on", "a web"], ["…owl that sits on a", "web"]],
    ),
    "a long word": (["a" * 30 + "b"], [["aaaaaaaaa…aaaaaaaab"]]),
    "names that are the same": (["one " * 20] * 2, [["one one one one one", "…one one one one one"]] * 2),
    "nothing": ([""], [[""]]),
}


@pytest.mark.parametrize(("names", "lines"), NAMES.values(), ids=NAMES)
def test_names_that_are_too_long_keep_what_differs(names, lines):
    assert shorten_names(names) == lines
    assert all(len(one) <= 2 and max(map(len, one)) <= 20 for one in shorten_names(names))


def test_labels_name_kinds_that_differ_before_others(comparison):
    chosen = labeled(comparison.kinds)
    significant = [kind for kind in chosen if kind.p_value <= 0.05]
    assert chosen[: len(significant)] == significant and len(chosen) <= 13
    sizes = [abs(kind.difference) for kind in significant]
    assert sizes == sorted(sizes, reverse=True)


def test_kinds_of_several_sets_have_a_map_with_the_set_that_a_kind_sets_apart(planted, tmp_path):
    gen, ref = planted
    sets = {"a": gen, "b": ref.select(range(0, ref.n, 2)), "ref": ref.select(range(1, ref.n, 2))}
    found = fe.kinds(sets)
    assert set(found.map.sets) == set(sets) and len(found.map) <= MAP_SAMPLES + 100
    text, svg = drawn(found, tmp_path)
    assert colored(svg) == {f"mode-{kind.id}" for kind in found.significant()} != set()
    assert "purple: more in a" in text and "· a<" in svg
    assert '<g class="model-0" data-mode' in svg and '<g class="gen"' not in svg
    found.save(tmp_path / "kinds.h5")
    assert fe.load(tmp_path / "kinds.h5").to_atlas().set.value_counts().to_dict() == {
        label: found.map.sets.count(label) for label in sets
    }


def test_where_nothing_was_found_samples_are_drawn_at_random(halves, tmp_path):
    ids = {label: halves.drawn_ids(label) for label in ("gen", "ref")}
    assert {label: len(set(one)) for label, one in ids.items()} == {"gen": 24, "ref": 24}
    text, _ = drawn(halves, tmp_path)
    shown = text[text.index("Drawn at random") :]
    assert all(f'alt="{name}"' in shown for name in (*ids["gen"], *ids["ref"]))
    assert halves.showing(0).drawn_ids("gen") == ()


def test_members_of_a_kind_are_all_of_it_from_typical_to_odd(comparison, tmp_path):
    kind = comparison.significant()[0]
    found = comparison.members(kind.id)
    assert {label: len(ids) for label, ids in found.items()} == {
        label: part.count for label, part in kind.shares.items()
    }
    most = kind.shares[kind.set_with_most]
    middle = len(found[kind.set_with_most]) // 2
    places = [found[kind.set_with_most].index(name) for name in most.top_ids]
    assert np.mean(places) < middle
    for heading in comparison.headings[:1]:
        parts = [comparison.members(one) for one in heading.children]
        assert sorted(comparison.members(heading.id)["gen"]) == sorted(name for one in parts for name in one["gen"])
    with pytest.raises(UsageError, match="has no kind 'k9999'"):
        comparison.members("k9999")


def test_a_board_draws_each_model_on_one_map_of_the_kinds(tmp_path):
    rng = np.random.default_rng(0)
    centers = 4 * rng.normal(size=(6, 8))

    def of_kinds(*weights):
        return centers[rng.choice(6, 300, p=np.array(weights) / sum(weights))] + rng.normal(size=(300, 8))

    models = {
        "demo": of_kinds(1, 1, 1, 1, 1, 2),
        "lacking": of_kinds(0, 1, 1, 1, 1, 0),
        "clean": of_kinds(1, 1, 1, 1, 1, 0),
    }
    board = fe.leaderboard(models, of_kinds(1, 1, 1, 1, 1, 0), metrics=["kid"])
    assert 20 < len(board.places.kinds) <= 256 and set(board.places.kinds) <= {kind.id for kind in board.kinds}
    text = board.to_html(tmp_path / "board.html").read_text()
    maps = dict(re.findall(r'<svg class="map small-map".*?<title>Map of (\w+)</title>(.*?)</svg>', text, re.DOTALL))
    assert maps.keys() == models.keys() and not colored(maps["clean"])
    for name in ("demo", "lacking"):
        surely = {
            f"mode-{kind.id}"
            for kind in board.kinds
            if kind.shares[name].interval[0] > kind.shares["ref"].interval[1]
            or kind.shares[name].interval[1] < kind.shares["ref"].interval[0]
        }
        assert surely and colored(maps[name]) == {one for one in surely if one in maps[name]}
    # The models have their own colors, in the order in which they are given, in the maps, the rows and the bars alike.
    assert set(re.findall(r'<g class="(model-\d)', maps["demo"])) == {"model-0"}
    assert set(re.findall(r'<g class="(model-\d less)', maps["lacking"])) == {"model-1 less"}
    drawn = re.findall(r'<g class="([\w-]+)"[^>]*><title>(demo|lacking|clean|ref) [\d.]', text)
    assert {name: {ink for ink, own in drawn if own == name} for name in (*models, "ref")} == {
        "clean": {"model-2"},
        "demo": {"model-0"},
        "lacking": {"model-1"},
        "ref": {"ref"},
    }
    assert re.findall(r'<th role="rowheader" scope="row" class="id (model-\d)"><a[^>]*>demo<', text) == ["model-0"]
    assert fe.Leaderboard.from_dict(board.to_dict()).places == board.places
