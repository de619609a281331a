"""Patterns and names choose the samples; or one clear sentence."""

import io
import tarfile

import numpy as np
import pytest
import torch
from inputs._images import ENCODED, IMAGES, Items, first, pixels, saved
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.samples.opening import open_source
from finc_eval.samples.reading import matches


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "pattern, names",
    [
        ("*_fake.png", {"a_fake.png", "b/c_fake.png"}),
        ("b/*", {"b/c_fake.png", "b/d_real.png"}),
        ("b/**", {"b/c_fake.png", "b/d_real.png", "b/e/f.png"}),
        ("**/f.png", {"b/e/f.png"}),
        ("?_fake.png", {"a_fake.png", "b/c_fake.png"}),
        ("[a-c]_*", {"a_fake.png", "b/c_fake.png"}),
        ("[!a]_*", {"b/c_fake.png", "b/d_real.png"}),
        ("*.PNG", set()),
        ("(a)+.png", {"(a)+.png"}),
    ],
)
def test_patterns_match_names_as_shells_do(pattern, names):
    every = {"a_fake.png", "b/c_fake.png", "b/d_real.png", "b/e/f.png", "(a)+.png"}
    assert {name for name in every if matches(pattern, name)} == names


@pytest.mark.parametrize(
    ("pattern", "chosen", "others"),
    [
        ("*a*b", "xaxab xab ab ab/xab", "b a/b ba a abc"),
        ("x/a**b", "x/ab x/a/b x/axx/y/zb x/a/x/bb", "x/a/x/bc x/ba"),
        ("**/a*b", "ab x/ab x/y/axb ax/ab", "xab a/b x/abc"),
        ("a/**/*c/b", "a/c/b a/x/yc/b a/c/x/c/b", "a/b a/c/x/b"),
        ("a**/b", "a/b ax/b a/x/y/b", "ab axb"),
        ("**a*b/**c", "ab/c xa/ab/c xab/x/yc", "a/b/c ab/x"),
        ("x/[!a]b", "x/cb x/]b", "x/ab x//b"),
        ("x?y/[]a]", "xay/] xby/a", "x/y/a xy/a"),
        ("[!]/a", "[!]/a", "b/a !/a"),
    ],
)
def test_stars_that_follow_each_other_find_what_any_division_finds(pattern, chosen, others):
    assert [name for name in chosen.split() if not matches(pattern, name)] == []
    assert [name for name in others.split() if matches(pattern, name)] == []


@pytest.fixture
def results(tmp_path):
    for number, image in enumerate(IMAGES):
        for kind, values in (("fake_B", image), ("real_B", 255 - image)):
            path = tmp_path / f"results/{number % 2}/{number:02d}_{kind}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(values).save(path)
    return tmp_path / "results"


FAKE = np.concatenate([IMAGES[::2], IMAGES[1::2]])
CHOICES = [
    {"include": "*_fake_B.png"},
    {"include": ["*_fake_B.png", "nothing"]},
    {"exclude": "*_real_*"},
    {"exclude": ("*_real_*", "*.jpg")},
    {"include": "*.png", "exclude": "*real*"},
]


@pytest.mark.one_of_each("choice", "form")
@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("form", ["folder", "zip", "tar"])
def test_patterns_choose_the_samples(choice, form, results, tmp_path):
    source = results
    if form != "folder":
        import shutil

        source = shutil.make_archive(str(tmp_path / "packed"), form, results)
    assert np.array_equal(pixels(source, **choice), FAKE)
    assert "left out by name" in open_source(source, **choice).ignored


@pytest.mark.one_of_each
@pytest.mark.parametrize("pattern", ["results/*/*_fake_B.png", "results/**/*_fake*", "results/[01]/??_fake_B.png"])
def test_a_path_with_wildcards_is_a_set(pattern, results):
    assert np.array_equal(pixels(pattern), FAKE)
    few = {"features": 20, "modes": 1, "method": fe.Finc(clusters=False)}
    comparison = fe.compare(pattern, pattern.replace("fake", "real"), extractor="pixels", **few)
    assert not any("left out" in one for one in comparison.warnings)


def test_files_that_patterns_leave_out_stand_in_the_result(results):
    how = fe.Extraction("pixels", include="*_fake_B.png")
    few = {"features": 20, "modes": 1, "method": fe.Finc(clusters=False)}
    said = " ".join(fe.compare(results, results, extractor=how, **few).warnings)
    assert "20 x left out by name" in said


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    "source, how, message",
    [
        ("results", {"include": "*.jpg"}, "no images that the patterns choose"),
        ("results/*.jpg", {}, "matches nothing"),
        ("nowhere/*.jpg", {}, "the folder nowhere does not exist"),
        ("results", {"image_key": "a"}, "has no names: leave it out"),
        ("results", {"include": ""}, "include must be patterns"),
        ("results", {"include": [""]}, "include must be patterns"),
        ("results", {"exclude": [3]}, "exclude must be patterns"),
        ("results", {"image_key": 3}, "image_key must be a text"),
        (IMAGES, {"include": "*"}, "the array has none"),
        (iter(IMAGES), {"include": "*", "n": 3}, "the iterator has none"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_a_choice_that_chooses_nothing_is_one_sentence(source, how, message, results):
    with pytest.raises(FincEvalError, match=message):
        open_source(source, **how)


def tar(name, members):
    with tarfile.open(name, "w") as file:
        for member, data in members:
            info = tarfile.TarInfo(member)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return name


def pairs(*suffixes):
    """Return members of a tar: the image under the first suffix, its opposite under the second."""
    both = zip(ENCODED, ENCODED[::-1], strict=True)
    return [(f"{i:02d}{end}", data) for i, two in enumerate(both) for end, data in zip(suffixes, two, strict=False)]


@pytest.mark.parametrize("suffix", [".img", "", ".bin", ".PNG", ".jpg_large", ".webp", ".a.png"])
def test_members_of_a_tar_are_images_by_their_bytes(suffix):
    source = tar("x.tar", [*pairs(suffix), ("21.csv", ENCODED[0])])
    assert np.array_equal(pixels(source), IMAGES)


@pytest.mark.parametrize(
    "suffixes, key, others",
    [
        ((".left.png", ".right.png"), "left.png", {".right.png": 20}),
        ((".left.png", ".right.png"), ".LEFT.png", {".right.png": 20}),
        ((".Left.PNG", ".Right.PNG"), "left.png", {".right.png": 20}),
        ((".jpg", ".png"), "jpg", {".png": 20}),
        ((".img", ".mask"), "img", {".mask": 20}),
        ((".jpg", ".seg.png"), None, {".seg.png": 20}),
        ((".jpg", ".seg.png"), "jpg", {".seg.png": 20}),
    ],
)
def test_one_of_two_images_a_key_is_chosen(suffixes, key, others):
    source = open_source(tar("x.tar", pairs(*suffixes)), image_key=key)
    assert source.ignored == others
    assert np.array_equal(np.stack([sample.pixels for sample in source.samples()]), IMAGES)


@pytest.mark.parametrize("suffixes", [(".left.png", ".right.png"), (".jpg", ".png"), (".img", ".mask")])
def test_two_images_a_key_are_refused_with_the_way_out(suffixes):
    with pytest.raises(FincEvalError, match=f"two images of the sample x/00, .*image_key='{suffixes[0][1:]}'"):
        open_source(tar("x.tar", pairs(*suffixes)))


def test_an_image_key_that_no_member_has_names_those_that_there_are():
    with pytest.raises(FincEvalError, match=r"did you mean \"left.png\".*20 x left.png, 20 x right.png"):
        open_source(tar("x.tar", pairs(".left.png", ".right.png")), image_key="lef.png")


def test_names_with_dots_are_known_by_their_last_one():
    source = open_source(tar("x.tar", [(f"epoch.5.{i:04d}.png", data) for i, data in enumerate(ENCODED)]))
    assert source.ids[:2] == ["x/epoch.5.0000", "x/epoch.5.0001"]


def dictionaries(number):
    return {"fake": first(IMAGES[number]), "mask": torch.zeros(3, 8, 8, dtype=torch.uint8), "n": number}


KEYED = {
    "dataset": lambda: Items(dictionaries),
    "loader": lambda: torch.utils.data.DataLoader(Items(dictionaries), batch_size=4),
    "list": lambda: [dictionaries(i) for i in range(len(IMAGES))],
    "generator": lambda: (dictionaries(i) for i in range(len(IMAGES))),
    "npz": lambda: saved("x.npz", lambda name, x: np.savez(name, fake=x, mask=x * 0), IMAGES),
    "pt": lambda: saved("x.pt", lambda name, x: torch.save({"fake": first(x), "mask": first(x)}, name), IMAGES),
}


@pytest.mark.parametrize("form", KEYED)
def test_an_image_key_chooses_among_named_images(form):
    n = len(IMAGES) if form == "generator" else None
    assert np.array_equal(pixels(KEYED[form](), image_key="fake", n=n), IMAGES)
    with pytest.raises(FincEvalError, match=r"fak|name the images by image_key"):
        pixels(KEYED[form](), image_key="fak", n=n)
    with pytest.raises(FincEvalError, match="image_key"):
        pixels(KEYED[form](), n=n)


@pytest.mark.parametrize("name", ["base/data.mdb", "base", "images.lmdb"])
def test_an_lmdb_is_refused_with_the_way_to_files(tmp_path, name):
    (tmp_path / "base").mkdir()
    for path in (tmp_path / "base" / "data.mdb", tmp_path / "images.lmdb"):
        path.write_bytes(bytes(4096))
    with pytest.raises(FincEvalError, match=f"{name} is an LMDB, which is not read: write its images to files"):
        open_source(tmp_path / name)


def test_pictures_are_read_again_by_the_same_choice(results):
    np.save("x.npy", IMAGES / 127.5 - 1)
    np.save("y.npy", 1 - IMAGES / 127.5)
    how = fe.Extraction("pixels", range=(-1, 1))
    few = {"features": 20, "modes": 1, "method": fe.Finc(clusters=False)}
    page = fe.compare("x.npy", "y.npy", extractor=how, **few).to_html("page.html").read_text()
    assert "data:image/" in page
