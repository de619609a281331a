"""Lists, arrays and streams of images: each set has the profile of what was passed, and its pictures are at hand."""

import io
import itertools
import pickle

import numpy as np
import pytest
from _extraction import extract, message
from _quick import small_pixels  # noqa: F401
from PIL import Image, ImageCms

import finc_eval as fe
from finc_eval.gallery.members import pictured_ids

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
GRAY = [
    np.asarray(Image.fromarray(rows).resize((24, 24), Image.Resampling.BICUBIC))
    for rows in np.random.default_rng(3).integers(0, 256, (24, 6, 6), dtype=np.uint8)
]


QUICK = {"features": 20, "modes": 1, "method": fe.Finc(clusters=False)}


def encoded(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


JPEGS = [encoded(Image.fromarray(pixels), "JPEG", quality=40) for pixels in GRAY]
DECODED = [Image.open(io.BytesIO(data)).convert("L") for data in JPEGS]  # all forms have these pixels
COLORED = [image.convert("RGB") for image in DECODED]


def opened(images):
    return [Image.open(io.BytesIO(data)) for data in images]


PNGS = [encoded(image, "PNG") for image in COLORED]
WITH_ALPHA = [encoded(image.convert("RGBA"), "PNG") for image in DECODED]
WITH_PROFILE = [encoded(image, "TIFF", icc_profile=PROFILE.replace(b"sRGB", b"mRGB")) for image in COLORED]

FORMS = {
    "array": lambda folder: np.stack([np.asarray(image) for image in COLORED]),
    "JPEGs": lambda folder: JPEGS,
    "PNGs": lambda folder: PNGS,
    "alpha": lambda folder: WITH_ALPHA,
    "TIFFs of another color space": lambda folder: WITH_PROFILE,
    "Pillow JPEGs": lambda folder: opened(JPEGS),
    "Pillow with alpha": lambda folder: [image.convert("RGBA") for image in DECODED],
    "paths": lambda folder: written(folder, JPEGS),
    "stream": lambda folder: iter(opened(PNGS)),
    "tuples with labels": lambda folder: [(image, 7) for image in opened(PNGS)],
}


def written(folder, images):
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number:02}" for number in range(len(images))]
    for path, data in zip(paths, images, strict=True):
        path.write_bytes(data)
    return paths


def profile(given):
    return extract(given, n=24 if hasattr(given, "__next__") else None).profile


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """Return a function that gives the profile of a form, which nothing was embedded before."""

    def found(form):
        monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / f"cache of {form}"))
        return profile(FORMS[form](tmp_path / "files"))

    return found


@pytest.mark.long
def test_the_profile_is_that_of_the_passed_samples_whatever_was_embedded_before(alone, tmp_path, monkeypatch):
    expected = {form: alone(form) for form in FORMS}
    assert len({repr(one) for one in expected.values()}) == 7  # three pairs are encoded alike
    for order in (list(FORMS), list(reversed(FORMS))):
        monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / f"cache from {order[0]}"))
        for form in order:
            assert profile(FORMS[form](tmp_path / "files")) == expected[form], form


@pytest.mark.long
def test_the_warning_does_not_depend_on_what_was_embedded_before(own_cache_folder):
    lists = {"jpegs": JPEGS, "pngs": PNGS, "alpha": WITH_ALPHA}
    for gen, ref in itertools.permutations(lists, 2):
        said = str(fe.compare(lists[gen], lists[ref], extractor="pixels", **QUICK).warnings)
        assert ("are compressed with loss" in said) == ("jpegs" in (gen, ref))
        assert ("have an alpha channel" in said) == ("alpha" in (gen, ref))


def test_a_list_of_arrays_and_their_stack_have_one_cache(own_cache_folder):
    stacked = FORMS["array"](None)
    caches = [extract(one) for one in (stacked, list(stacked), [*map(Image.fromarray, stacked)])]
    assert len({cache.path for cache in caches}) == 1


def test_the_rule_for_the_samples_is_that_of_the_last_call(tmp_path, own_cache_folder):
    few, many = tmp_path / "few", tmp_path / "many"
    for folder, names in ((many, ("a_fake.png", "a_real.png")), (few, ("a_fake.png",))):
        folder.mkdir()
        for name, data in zip(names, PNGS, strict=False):
            (folder / name).write_bytes(data)
    assert extract(few).reading.include == ()
    assert extract(many, include="*_fake.png").reading.include == ("*_fake.png",)
    assert extract(few).reading.include == ()


COLORS = np.random.default_rng(5).integers(0, 256, (60, 5, 5, 3), dtype=np.uint8)
PHOTOS = [Image.fromarray(rows).resize((32, 32), Image.Resampling.BICUBIC) for rows in COLORS]
PLAIN = [image.convert("L").convert("RGB") for image in PHOTOS]
HELD = {
    "Pillow": lambda images, folder: images,
    "tuple": lambda images, folder: tuple(images),
    "arrays": lambda images, folder: [np.asarray(image) for image in images],
    "array": lambda images, folder: np.stack([np.asarray(image) for image in images]),
    "bytes": lambda images, folder: [encoded(image, "PNG") for image in images],
    "paths": lambda images, folder: written(folder, [encoded(image, "PNG") for image in images]),
    "texts": lambda images, folder: [*map(str, written(folder, [encoded(image, "PNG") for image in images]))],
}


@pytest.fixture(scope="module")
def of_folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    for name, images in (("gen", PLAIN), ("ref", PHOTOS)):
        (folder / name).mkdir()
        for number, image in enumerate(images):
            image.save(folder / name / f"{name}{number:02}.png")  # the same names would be two runs
    return fe.compare(folder / "gen", folder / "ref", extractor="pixels", **QUICK)


@pytest.mark.one_of_each
@pytest.mark.parametrize("form", HELD)
def test_what_is_held_has_looks_and_pictures_as_a_folder_has(form, of_folders, tmp_path, own_cache_folder):
    gen, ref = (HELD[form](images, tmp_path / name) for name, images in (("gen", PLAIN), ("ref", PHOTOS)))
    found = fe.compare(gen, ref, extractor="pixels", **QUICK)
    names = [look.name for look in of_folders.looks]
    assert names and [look.name for look in found.looks] == names
    del gen, ref
    folded = pictured_ids(found.folds)
    shown = {label: {*ids, *folded.get(label, ())} for label, ids in found.shown_samples().items()}
    assert all(shown.values()) and not found.gallery.notes
    found.save(tmp_path / "found.h5")
    for one in (found, fe.Comparison.load(tmp_path / "found.h5")):
        assert {label: set(of_set) for label, of_set in one.gallery.pictures.items()} == shown


def test_pictures_that_changed_after_the_comparison_are_not_shown(tmp_path, own_cache_folder):
    gen, ref = (np.stack([np.asarray(image) for image in images]) for images in (PLAIN, PHOTOS))
    found = fe.compare(gen, ref, extractor="pixels", **QUICK)
    gen[:] = 0
    assert not found.gallery.pictures["gen"] and found.gallery.pictures["ref"]


def test_a_result_goes_to_another_process_without_what_is_held(own_cache_folder):
    class OfThisProcess(list):
        def __reduce__(self):
            raise TypeError("the dataset cannot be copied")

    found = fe.compare(OfThisProcess(PLAIN), OfThisProcess(PHOTOS), extractor="pixels", **QUICK)
    again = pickle.loads(pickle.dumps(found))
    assert again.headline == found.headline and not again.gallery.pictures["gen"]
    assert found.gallery.pictures["gen"]


@pytest.mark.long
def test_looks_that_are_not_measured_are_told(tmp_path, own_cache_folder):
    held, stream = extract(PLAIN, out=tmp_path / "held.h5"), extract(iter(PHOTOS), n=60)
    for sets, gone in (
        ((held, stream), "the images of ref are"),
        ((stream, stream), "the images of gen and ref are"),
        ((fe.EmbeddingCache(held.path), PHOTOS), "the images of gen are"),
        ((held, PHOTOS), None),
        ((held[:], stream[:]), None),
    ):
        said = [one for one in fe.compare(*sets, extractor=None, **QUICK).warnings if "not measured" in one]
        assert [one.partition(" neither")[0] for one in said] == ([] if gone is None else [gone])


@pytest.mark.parametrize("extractor", ["pixels", "motion"])
@pytest.mark.parametrize(
    "form", [list, tuple, lambda paths: [str(path) for path in paths], lambda paths: [(paths[0], 1)]]
)
def test_a_list_of_videos_is_told_to_be_videos(form, extractor, tmp_path, own_cache_folder):
    videos = [tmp_path / "one.mp4", tmp_path / "two.MKV"]
    for path in videos:
        path.write_bytes(b"\0\0\0\x18ftypmp42" + bytes(200))
    said = message(extract, form(videos), extractor)
    assert f"item 0 of the dataset is the video {videos[0]}" in said
    assert "pass the folder that holds the videos, to an extractor for clips" in said


@pytest.mark.long
def test_clips_in_an_array_are_shown(own_cache_folder):
    clips = np.random.default_rng(0).integers(0, 256, (20, 8, 16, 16, 3), dtype=np.uint8)
    found = fe.compare(extract(clips, "motion"), extract(np.repeat(clips[:, :1], 8, 1), "motion"), **QUICK)
    assert all(found.gallery.pictures.values()) and not found.gallery.notes
