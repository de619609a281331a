"""Patterns and names choose the samples, and numbers have the range that is stated; or one clear sentence."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.samples.opening import open_source
from finc_eval.samples.reading import matches

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3)).astype(np.uint8)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def pixels(source, **how):
    return np.stack([sample.pixels for sample in open_source(source, **how).samples()])


def png(image):
    data = io.BytesIO()
    Image.fromarray(image).save(data, "PNG")
    return data.getvalue()


ENCODED = [png(image) for image in IMAGES]


class Items(torch.utils.data.Dataset):
    def __init__(self, make):
        self.make = make

    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, number):
        return self.make(number)


def first(values):
    """Return values of images as tensors have them, channels first."""
    return torch.as_tensor(values).movedim(-1, -3)


def saved(name, save, values):
    save(name, values)
    return name


RANGES = {
    (-1, 1): lambda images: images / 127.5 - 1,
    (0, 1): lambda images: (images / 255).astype(np.float32),
    (0, 255): lambda images: images.astype(np.float64),
    (0, 4080): lambda images: images.astype(np.uint16) * 16,
    (-128, 127): lambda images: (images.astype(int) - 128).astype(np.int8),
    (-2.5, 2.5): lambda images: images / 51 - 2.5,
}
FORMS = {
    "array": lambda x: x,
    "tensor": first,
    "list of arrays": list,
    "dataset of tuples": lambda x: Items(lambda i: (first(x[i]), i)),
    "dataset of dictionaries": lambda x: Items(lambda i: {"image": first(x[i]), "label": i}),
    "loader": lambda x: torch.utils.data.DataLoader(Items(lambda i: first(x[i])), batch_size=3),
    "npz": lambda x: saved("x.npz", np.savez, x),
    "npy": lambda x: saved("x.npy", np.save, x),
    "pt": lambda x: saved("x.pt", lambda name, x: torch.save(first(x), name), x),
    "pth of a dictionary": lambda x: saved("x.pth", lambda name, x: torch.save({"images": first(x)}, name), x),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("limits", RANGES, ids=str)
def test_numbers_of_a_stated_range_are_the_images_of_8_bits(limits, form):
    assert np.array_equal(pixels(FORMS[form](RANGES[limits](IMAGES)), range=limits), IMAGES)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_halved_precision_of_a_stated_range_is_near_the_images(kind):
    found = pixels(first(IMAGES / 127.5 - 1).to(kind), range=(-1, 1))
    assert np.abs(found.astype(int) - IMAGES).max() <= 1


@pytest.mark.parametrize("form", FORMS)
def test_numbers_outside_of_the_range_are_refused_with_their_range(form):
    source = FORMS[form](IMAGES / 127.5 - 1)
    with pytest.raises(FincEvalError, match=r"values from -\d.*outside of the range 0 to 1"):
        pixels(source, range=(0, 1))


@pytest.mark.parametrize("form", FORMS)
def test_numbers_without_a_range_are_refused_and_the_range_is_advised(form):
    with pytest.raises(FincEvalError, match=r"range=\(-1, 1\)"):
        pixels(FORMS[form]((IMAGES / 127.5 - 1).astype(np.float32)))


@pytest.mark.parametrize("limits", [(1,), (1, 1), (1, -1), (0, np.inf), (0, np.nan), "ab", 5, (0, 1, 2)], ids=str)
def test_a_range_is_two_increasing_numbers(limits):
    with pytest.raises(FincEvalError, match="range must be the numbers of black and white"):
        open_source(IMAGES, range=limits)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_in_no_range(value):
    images = IMAGES / 255
    images[3, 2, 1, 0] = value
    with pytest.raises(FincEvalError, match="outside of the range"):
        pixels(images, range=(0, 1))


DEEP = {
    ("png", (0, 4080)): lambda gray: gray.astype(np.uint16) * 16,
    ("tif", (0, 4080)): lambda gray: gray.astype(np.uint16) * 16,
    ("tif", (-1, 1)): lambda gray: (gray / 127.5 - 1).astype(np.float32),
    ("tif", (0, 255)): lambda gray: gray.astype(np.int32),
}


@pytest.mark.parametrize("suffix, limits", DEEP, ids=str)
def test_files_of_more_than_8_bits_have_the_stated_range(suffix, limits, tmp_path):
    (tmp_path / "set").mkdir()
    for number, gray in enumerate(IMAGES[..., 0]):
        Image.fromarray(DEEP[suffix, limits](gray)).save(tmp_path / f"set/{number:02d}.{suffix}")
    assert np.array_equal(pixels(tmp_path / "set", range=limits)[..., 0], IMAGES[..., 0])
    caches = [fe.extract(tmp_path / "set", "pixels", range=(limits[0], most)) for most in (limits[1], 2 * limits[1])]
    assert caches[0].key != caches[1].key and not np.array_equal(caches[0][:], caches[1][:])


def test_the_command_line_takes_a_range():
    np.save("x.npy", IMAGES / 127.5 - 1)
    done = CliRunner().invoke(
        app, ["extract", "x.npy", "--range", "-1,1", "--extractor", "pixels", "--out", "x.h5", "--quiet"]
    )
    assert done.exit_code == 0, done.output
    assert np.array_equal(fe.EmbeddingCache("x.h5")[:], fe.extract(IMAGES, "pixels")[:])


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


COLUMNS_WITHOUT_IMAGES = {
    "lists of numbers": [[1.0, 2.0]] * 3,
    "lists of images": [[Image.fromarray(IMAGES[0])]] * 3,
    "rows of pixels": [IMAGES[0, ..., 0].tolist()] * 3,
    "paths": ["a.png"] * 3,
}


@pytest.mark.parametrize("key", [None, "x"])
@pytest.mark.parametrize("how", COLUMNS_WITHOUT_IMAGES)
def test_a_dataset_without_images_says_what_its_columns_hold(how, key):
    table = hf.Dataset.from_dict({"x": COLUMNS_WITHOUT_IMAGES[how], "n": [1, 2, 3]})
    kind = "string" if how == "paths" else "lists"
    with pytest.raises(FincEvalError, match=rf"no column of images.* it has x \({kind}\), n \(int64\)") as refused:
        open_source(table, image_key=key)
    assert "image_key" not in str(refused.value)


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
    comparison = fe.compare(pattern, pattern.replace("fake", "real"), extractor="pixels", features=50)
    assert not any("left out" in one for one in comparison.warnings)


def test_files_that_patterns_leave_out_stand_in_the_result(results):
    how = fe.Extraction("pixels", include="*_fake_B.png")
    said = " ".join(fe.compare(results, results, extractor=how, features=50).warnings)
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


LABELS = torch.arange(20) % 3
TEXTS = [str(i % 3) for i in range(20)]
BESIDE = {
    "a tuple": (lambda x: (x, LABELS), TEXTS),
    "a list": (lambda x: [x, LABELS], TEXTS),
    "labels": (lambda x: {"images": x, "labels": LABELS}, TEXTS),
    "targets": (lambda x: {"images": x, "targets": LABELS.byte()}, TEXTS),
    "whole numbers as floats": (lambda x: {"images": x, "label": LABELS.double()}, TEXTS),
    "halves": (lambda x: {"images": x, "label": LABELS.bfloat16()}, TEXTS),
    "before them": (lambda x: {"labels": LABELS, "images": x}, TEXTS),
    "scores": (lambda x: (x, LABELS + 0.5), None),
    "large numbers": (lambda x: (x, LABELS + 10**7), [f"1000000{text}" for text in TEXTS]),
    "a matrix": (lambda x: {"images": x, "labels": LABELS[:, None]}, None),
}


@pytest.mark.parametrize("are_embeddings", [False, True], ids=["images", "embeddings"])
@pytest.mark.parametrize("beside", BESIDE)
def test_labels_beside_tensors_are_their_labels(beside, are_embeddings):
    make, labels = BESIDE[beside]
    samples = torch.randn(20, 5) if are_embeddings else first(IMAGES)
    held = make(samples)
    if are_embeddings and isinstance(held, dict):
        held["embeddings"] = held.pop("images")
    torch.save(held, "x.pt")
    source = as_embeddings("x.pt") if are_embeddings else open_source("x.pt")
    if are_embeddings:
        assert (source.column("label") if "label" in source.columns else None) == labels
    else:
        assert source.labels == labels


def test_a_vector_of_another_length_beside_tensors_without_names_is_refused():
    for samples in (torch.randn(20, 5), first(IMAGES)):
        torch.save((samples, LABELS[:7]), "x.pt")
        with pytest.raises(FincEvalError, match="weights of a network, not samples"):
            fe.extract("x.pt", "pixels") if samples.ndim > 2 else as_embeddings("x.pt")


arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TABLES = {
    "bytes and path": {"image": [{"bytes": data, "path": "a.png"} for data in ENCODED]},
    "bytes": {"content": ENCODED},
    "with labels": {"img": ENCODED, "label": [i % 3 for i in range(20)], "caption": ["x"] * 20},
    "two columns": {"other": ENCODED[::-1], "image": ENCODED},
    "large bytes": {"image": arrow.array(ENCODED, arrow.large_binary())},
    "a structure of other bytes": {"size": [{"bytes": len(data)} for data in ENCODED], "picture": ENCODED},
}


@pytest.mark.one_of_each("table", "rows")
@pytest.mark.parametrize("rows", [7, 1000])
@pytest.mark.parametrize("table", TABLES)
def test_a_table_with_encoded_images_is_a_set(table, rows):
    parquet.write_table(arrow.table(TABLES[table]), "x.parquet", row_group_size=rows)
    assert np.array_equal(pixels("x.parquet"), IMAGES)
    assert np.array_equal(pixels("x.parquet", n=5), IMAGES[[int(name) for name in open_source("x.parquet", n=5).ids]])
    source = open_source("x.parquet")
    assert source.labels == ([str(i % 3) for i in range(20)] if table == "with labels" else None)
    assert source.prompts == (["x"] * 20 if table == "with labels" else None)
    np.savez("y.npz", IMAGES[::-1])
    assert fe.metrics("x.parquet", "y.npz", "kid", extractor="pixels").ref == "y.npz"


def test_rows_far_into_a_table_are_read_by_their_numbers():
    parquet.write_table(arrow.table({"image": [*ENCODED, *[ENCODED[0]] * 100, *ENCODED[::-1]]}), "x.parquet")
    assert [sample.id for sample in open_source("x.parquet").samples()] == [str(row) for row in range(140)]


def test_columns_of_a_table_are_chosen_by_name():
    parquet.write_table(arrow.table({"image": [list(ENCODED[0])], "path": ["a.png"]}), "y.parquet")
    with pytest.raises(FincEvalError, match="has no column of images: none of its columns image, path hold the bytes"):
        open_source("y.parquet")
    parquet.write_table(arrow.table({"a": ENCODED[::-1], "b": ENCODED}), "x.parquet")
    assert np.array_equal(pixels("x.parquet", image_key="b"), IMAGES)
    for key in (None, "c"):
        with pytest.raises(FincEvalError, match="a, b"):
            open_source("x.parquet", image_key=key)


def test_a_folder_of_tables_is_one_set_and_a_missing_image_is_named():
    Path("hub/data").mkdir(parents=True)
    for part in range(4):
        rows = [None if (part, i) == (2, 1) else ENCODED[5 * part + i] for i in range(5)]
        parquet.write_table(arrow.table({"image": rows}), f"hub/data/train-{part}.parquet")
    cache = fe.extract("hub", "pixels")
    assert len(cache) == 19 and cache.failures == [("data/train-2/1", "the row has no image")]
    rows = fe.extract(np.delete(IMAGES, 11, 0), "pixels")
    assert np.array_equal(cache[:], rows[:])
    source = open_source("hub")
    assert [sample.id for sample in source.samples()] == source.ids
    few = {source.ids[number]: IMAGES[number] for number in (3, 7, 19)}
    found = source.read(few)
    assert list(found) == list(few) and all(np.array_equal(found[name], few[name]) for name in few)


def test_embeddings_in_a_table_are_embeddings():
    parquet.write_table(arrow.table({"embedding": [[1.0, 2.0]] * 30, "label": ["a"] * 30}), "x.parquet")
    assert fe.metrics("x.parquet", "x.parquet", "vendi")["vendi"].value == pytest.approx(1)


hf = pytest.importorskip("datasets")


def test_the_layout_of_the_hub_has_the_names_of_its_classes():
    columns = {"image": [Image.fromarray(x) for x in IMAGES], "label": [i % 2 for i in range(20)]}
    table = hf.Dataset.from_dict(columns).cast_column("image", hf.Image())
    table.cast_column("label", hf.ClassLabel(names=["cat", "dog"])).to_parquet("x.parquet")
    source = open_source("x.parquet")
    assert np.array_equal(pixels("x.parquet"), IMAGES) and source.labels[:3] == ["cat", "dog", "cat"]


def test_a_column_of_a_dataset_is_chosen_by_name():
    columns = {name: [Image.fromarray(x) for x in images] for name, images in (("a", IMAGES), ("b", 255 - IMAGES))}
    table = hf.Dataset.from_dict(columns).cast_column("a", hf.Image()).cast_column("b", hf.Image())
    assert np.array_equal(pixels(table, image_key="b"), 255 - IMAGES)
    with pytest.raises(FincEvalError, match="name one by image_key"):
        open_source(table)
    with pytest.raises(FincEvalError, match="no column of images 'c'"):
        open_source(table, image_key="c")


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
    page = fe.compare("x.npy", "y.npy", extractor=how, features=50).to_html("page.html").read_text()
    assert "data:image/" in page
