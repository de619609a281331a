"""The pictures of a result: from where they come, that no file decides it, and that they stay in its file."""

import io
import weakref
from dataclasses import replace

import numpy as np
import pytest
from _files import forge
from _pages import HOSTILE, OVER, UNDER, Page, a_comparison, a_mode, a_tail, noise, pixels
from PIL import Image

import finc_eval as fe
from finc_eval.comparison.compare import compare
from finc_eval.comparison.pages.comparison import page
from finc_eval.comparison.result import Comparison
from finc_eval.core.errors import DataError, UsageError
from finc_eval.embeddings.embedding_set import EmbeddingSet
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.counts import SHOWN_SAMPLES
from finc_eval.gallery.members import pictured_ids
from finc_eval.gallery.pictured import read_gallery
from finc_eval.gallery.thumbnails import thumbnail
from finc_eval.samples.source import Sample


def a_set(name="gen", samples=None, **changes):
    return SetInfo(name, None, 100, "aa", False, samples=samples, **changes)


def pictured(over=(OVER,), under=(UNDER,)):
    """A comparison whose samples are at hand."""
    return a_comparison(over, under, gen=a_set("gen", noise(1)), ref=a_set("ref", noise(2)))


def shown(comparison, **samples):
    found = Page(page(comparison, samples))
    return [found.attributes(n)["src"] for n in found.find("img")]


def test_a_saved_comparison_keeps_its_pictures(tmp_path):
    made = pictured([a_mode("over-1", tails=(a_tail((HOSTILE, "3"), ("4",)), a_tail((), (), 0.0)))])
    made = replace(made, kept={"gen": {HOSTILE: thumbnail(noise(5)[0])}, "ref": {"4": thumbnail(noise(6)[0])}})
    made.save(tmp_path / "c.h5")
    loaded = Comparison.load(tmp_path / "c.h5")
    assert loaded.kept == made.kept
    assert loaded.gallery.pictures == {"gen": made.kept["gen"], "ref": made.kept["ref"]}


def test_the_page_of_a_loaded_comparison_is_the_page_of_the_comparison(tmp_path):
    made = pictured()
    made.save(tmp_path / "c.h5")
    assert len(shown(made)) > 2 * SHOWN_SAMPLES
    assert page(Comparison.load(tmp_path / "c.h5"), {}) == page(made, {})


def test_a_path_that_a_file_names_is_never_opened(tmp_path):
    (tmp_path / "private").mkdir()
    Image.fromarray(noise(1, 1)[0]).save(tmp_path / "private" / "a.png")
    mode = a_mode("over-1", tails=(a_tail(("a.png",), ()), a_tail((), (), 0.0)))
    foreign = a_comparison([mode], gen=SetInfo("gen", str(tmp_path / "private"), 100, "aa", False))
    foreign.save(tmp_path / "c.h5")
    loaded = Comparison.load(tmp_path / "c.h5")
    assert loaded.gen.source == str(tmp_path / "private") and loaded.gen.samples is None
    assert shown(loaded) == []
    given = shown(loaded, gen=tmp_path / "private")
    assert given and all((pixels(uri) == noise(1, 1)[0]).all() for uri in given)


def test_samples_that_are_given_take_the_place_of_kept_ones(tmp_path):
    pictured().save(tmp_path / "c.h5")
    loaded = Comparison.load(tmp_path / "c.h5")
    gallery = loaded.gallery_of({"gen": noise(7)})
    assert (pixels(gallery.pictures["gen"]["0"].uri) == noise(7)[0]).all()
    assert (pixels(gallery.pictures["ref"]["0"].uri) == noise(2)[0]).all()


@pytest.mark.parametrize("count", [0, 3])
def test_the_number_of_pictures_can_be_chosen(tmp_path, count):
    few = pictured().showing(count)
    few.save(tmp_path / "c.h5")
    loaded = Comparison.load(tmp_path / "c.h5")
    assert loaded.shown == count and page(loaded, {}) == page(few, {})
    # Of each mode and set, as many typical samples and as many drawn ones.
    assert len(loaded.gallery.pictures["gen"]) == 2 * count and loaded.gallery.notes == ()


@pytest.mark.parametrize("count", [-1, 17, 2.0, True])
def test_an_impossible_number_of_pictures_is_refused(count):
    with pytest.raises(UsageError, match="from 0 to 16"):
        pictured().showing(count)


def test_pictures_of_photographs_are_bounded():
    photo = np.kron(noise(3, 1, 40)[0], np.ones((8, 8, 1), np.uint8))
    assert len(thumbnail(photo).data) < 12_000  # pure noise, the worst there is


@pytest.mark.parametrize("damage", ["short", "long", "index"])
def test_damaged_pictures_are_one_sentence(tmp_path, damage):
    pictured().save(tmp_path / "c.h5")

    def change(header, arrays):
        match damage:
            case "short":
                arrays["pictures/0"] = arrays["pictures/0"][:-1]
            case "long":
                arrays["pictures/0"] = np.append(arrays["pictures/0"], np.uint8(0))
            case "index":
                header["pictures"][0]["pictures"][0].pop()

    forge(tmp_path / "c.h5", change)
    with pytest.raises(DataError, match=r"c\.h5"):
        Comparison.load(tmp_path / "c.h5")


def test_a_kept_picture_of_another_kind_is_left_out_with_a_note(tmp_path):
    pictured().save(tmp_path / "c.h5")

    def change(header, _):
        header["pictures"][0]["pictures"][0][1] = "svg+xml"

    forge(tmp_path / "c.h5", change)
    found = Comparison.load(tmp_path / "c.h5")
    assert "1 of the " in found.gallery.notes[0] and "no pictures of them that can be read" in found.gallery.notes[0]
    assert "svg+xml" not in page(found, {})


def test_pictures_that_cannot_be_had_are_told_once(tmp_path):
    sets = {"gen": a_set("gen"), "ref": a_set("ref")}
    wanted = {"gen": ["1", "2"], "ref": ["1"]}
    (note,) = read_gallery(sets, wanted, {}, names={"gen": "the generated set"}).notes
    assert note == (
        "The samples of the generated set and the samples of ref are not shown, because only their ids are at hand: "
        "pass samples={'gen': …, 'ref': …} or --samples gen=…, the folder, zip, npz or array that holds them."
    )
    (note,) = read_gallery(sets, {"gen": ["1", "40"], "ref": []}, {"gen": noise(1)}).notes
    assert note.startswith("1 of the 2 samples of gen are not shown, because they cannot be found or read in array")
    (note,) = read_gallery({"gen": a_set(samples=str(tmp_path / "gone"))}, {"gen": ["1"]}, {}).notes
    assert "(gone does not exist" in note


def test_only_the_samples_shown_are_read_and_none_is_held(monkeypatch):
    asked, read = [], []

    class Recorder:
        ids = tuple(str(i) for i in range(10_000))
        name = "recorder"

        def take(self, numbers):
            for number in numbers:
                asked.append(number)
                image = noise(1, 1)[0].copy()
                read.append(weakref.ref(image))
                assert sum(reference() is not None for reference in read) <= 2
                yield Sample(str(number), image)

    monkeypatch.setattr("finc_eval.samples.opening.open_source", lambda source, clip: Recorder())
    gallery = read_gallery({"x": a_set(samples="x")}, {"x": [str(i) for i in range(0, 2000, 10)]}, {})
    assert gallery.notes == () and len(gallery.pictures["x"]) == 200
    assert asked == list(range(0, 2000, 10))


def test_the_members_drawn_at_random_are_members_and_not_only_the_most_extreme(assets):
    rng = np.random.default_rng(0)
    gen, ref = rng.normal(size=(600, 4)), rng.normal(size=(600, 4))
    planted = np.arange(600) % 3 == 0
    gen[planted] = rng.normal(6, 1, (planted.sum(), 4))
    mode = fe.compare(gen.astype("f4"), ref.astype("f4"), features=200, modes=3).over[0]
    drawn = [int(name) for name in mode.drawn_gen]
    assert len(drawn) == 16 and np.mean(planted[drawn]) > 0.9
    assert not set(mode.drawn_gen) <= set(mode.typical("gen")[:50])
    assert mode.drawn("ref") == mode.drawn_ref


def test_a_cache_of_somebody_else_shows_no_pictures_of_this_machine(tmp_path):
    """It names a folder and ids of its author's choice; what is read there is shown only if the cache knows it."""
    for name, seed in (("own", 0), ("private", 1)):
        (tmp_path / name).mkdir()
        for row, image in enumerate(noise(seed)[:30]):
            Image.fromarray(image).save(tmp_path / name / f"{row}.png")
        fe.extract(tmp_path / name, "pixels", tmp_path / f"{name}.h5").close()
    forge(tmp_path / "own.h5", lambda header, _: header.update(source=str(tmp_path / "private")))
    gen, ref = (fe.EmbeddingCache(tmp_path / f"{name}.h5") for name in ("own", "private"))
    found = fe.compare(gen, ref, features=20, sigma=5.0)
    assert found.gallery.pictures["gen"] == {} and found.gallery.pictures["ref"]
    assert "or are not the samples that were embedded" in found.gallery.notes[0]
    gen.close()
    assert as_embeddings(tmp_path / "own.h5").images_at(np.arange(2)) is None
    assert len(as_embeddings(ref).images_at(np.arange(2))) == 2


@pytest.mark.long
def test_pictures_in_memory_arrive_in_the_page_and_in_the_file(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2, 80, 4)).astype(np.float32)
    rows[0, :40] += 6
    images = rng.integers(0, 256, (80, 12, 12, 3), np.uint8)
    clips = rng.integers(0, 256, (80, 4, 12, 12, 3), np.uint8)
    gray = [Image.fromarray(image[..., 0]) for image in images]
    for held in (images, gray, clips):
        gen, ref = EmbeddingSet(rows[0], images=held), EmbeddingSet(rows[1], ids=[f"r{i}" for i in range(80)])
        found = compare(gen, ref, features=20, modes=1)
        (mode,) = found.over
        kept = {*found.shown_ids("gen"), *pictured_ids(found.folds).get("gen", ())}
        assert {*found.gallery.pictures["gen"]} == kept and not found.gallery.pictures["ref"]
        first = mode.typical("gen")[0]
        shown = found.gallery.pictures["gen"][first]
        strips = Page(page(found, {})).find("img", "strip")
        if held is clips:  # what does not count stands still
            assert 0 < len(strips) < len(found.shown_ids("gen"))
        else:
            assert not strips
        if held is clips:
            assert Image.open(io.BytesIO(shown.data)).n_frames == 4
        else:
            expected = np.asarray(Image.fromarray(images[int(first)][..., 0])) if held is gray else images[int(first)]
            np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(shown.data))), expected)
        assert found.captions["gen"][first].nearest is not None
        found.save(tmp_path / "c.h5")
        assert page(fe.load(tmp_path / "c.h5"), {}) == page(found, {})


def clips_of_two_kinds(seed, shares):
    """Embeddings and clips, 6 frames of 40 × 40 pixels, of five kinds with these shares."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(5, 80, p=shares)
    centers = np.random.default_rng(0).normal(size=(5, 24)) * 4
    rows = (centers[kinds] + rng.normal(size=(80, 24))).astype(np.float32)
    ids = [f"{seed}-{number}" for number in range(80)]
    return EmbeddingSet(rows, ids=ids, images=[noise(seed * 1000 + one, 6, 40) for one in range(80)])


@pytest.fixture(scope="module")
def of_clips():
    gen = clips_of_two_kinds(1, [0.5, 0.125, 0.125, 0.125, 0.125])
    return compare(gen, clips_of_two_kinds(2, [0.0, 0.25, 0.25, 0.25, 0.25]), features=20, modes=2)


def test_only_what_the_page_shows_is_read_and_only_what_moves_has_a_preview(of_clips):
    assert of_clips.significant() and any(kind.p_value > 0.05 for kind in of_clips.kinds)
    found = Page(page(of_clips, {}))
    images = [found.attributes(n) for n in found.find("img")]
    known = {(label, name): one for label, of_set in of_clips.gallery.pictures.items() for name, one in of_set.items()}
    assert {name for _, name in known} == {one["alt"].partition(",")[0].removeprefix("frames of ") for one in images}
    moving = {one["data-moving"] for one in images if "data-moving" in one}
    assert moving == {f"{label}/{name}" for (label, name), one in known.items() if one.is_moving}
    assert len(known) > len(moving) > 0


def test_a_clip_that_does_not_move_on_a_page_is_shown_by_its_last_frame(of_clips):
    still, shown_ids = of_clips.still_samples(), of_clips.shown_samples()
    for label, of_set in of_clips.gallery.pictures.items():
        assert {*still[label]} < {*shown_ids[label]}
        for name in still[label]:
            clip = noise(int(name[0]) * 1000 + int(name[2:]), 6, 40)
            assert not of_set[name].is_moving
            off = np.abs(np.asarray(of_set[name].last, int) - clip.astype(int)).mean((1, 2, 3))
            assert off.argmin() == 5
