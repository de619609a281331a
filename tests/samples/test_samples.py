"""Sets of images are found, read and distinguished."""

import io
import os
import shutil
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from PIL import Image

from finc_eval.core.doors import open_unbuffered
from finc_eval.core.errors import FincEvalError
from finc_eval.samples.files import whole
from finc_eval.samples.opening import open_source
from finc_eval.samples.source import TOGETHER, ahead, fingerprint, in_parts


def noise(n=6, height=9, width=7, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, height, width, 3), dtype=np.uint8)


def save_folder(path, images):
    path.mkdir(parents=True)
    for number, image in enumerate(images):
        Image.fromarray(image).save(path / f"{number:03}.png")
    return path


def save_zip(path, folder):
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*"), reverse=True):
            archive.write(file, file.relative_to(folder))
    return path


def pixels_of(source, start=0):
    return [sample.pixels for sample in source.samples(start)]


def message(call, *arguments):
    with pytest.raises(FincEvalError) as caught:
        call(*arguments)
    return str(caught.value)


def test_a_folder_is_read_recursively_in_sorted_order_whatever_the_case_of_the_suffix(tmp_path):
    root = tmp_path / "set"
    for name in ("b.PNG", "a/z.jpg", "a/deep/y.Jpeg", "c.webp", "B.tif", ".hidden.png", "__MACOSX/x.png"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(root / name)
    source = open_source(root)
    assert (source.kind, source.name) == ("folder", str(root))
    assert source.ids == ["B.tif", "a/deep/y.Jpeg", "a/z.jpg", "b.PNG", "c.webp"]
    assert [sample.id for sample in source.samples()] == source.ids


def test_files_that_are_no_images_are_counted_by_suffix(tmp_path):
    folder = save_folder(tmp_path / "set", noise(1))
    for name in ("a.txt", "b.TXT", "clip.mp4", "LICENSE"):
        (folder / name).write_text("x")
    assert open_source(folder).ignored == {".mp4": 1, ".txt": 2, "no suffix": 1}
    assert open_source(folder).manifest().ignored == {".mp4": 1, ".txt": 2, "no suffix": 1}


def test_links_to_folders_of_a_set_are_followed_but_not_in_circles(tmp_path):
    folder = save_folder(tmp_path / "set", noise(1))
    save_folder(folder / "other", noise(2))
    (folder / "more").symlink_to("other")
    (folder / "again").symlink_to(folder)
    assert open_source(folder).ids == [
        "000.png", "more/000.png", "more/001.png", "other/000.png", "other/001.png"
    ]  # fmt: skip
    (tmp_path / "link").symlink_to("set")  # the user named it
    assert open_source(tmp_path / "link").ids == open_source(folder).ids


def test_links_out_of_a_set_are_followed_on_request_but_not_upwards(tmp_path, monkeypatch):
    folder = save_folder(tmp_path / "sets" / "gen", noise(1))
    save_folder(tmp_path / "sets" / "ref", noise(2))
    save_folder(tmp_path / "other", noise(2))
    (folder / "deep").mkdir()
    (folder / "deep" / "up").symlink_to("../..")
    (folder / "far").symlink_to(tmp_path)
    (folder / "more").symlink_to(tmp_path / "other")
    monkeypatch.setenv("FINC_EVAL_FOLLOW_LINKS", "1")
    assert open_source(folder).ids == ["000.png", "more/000.png", "more/001.png"]


def test_folder_zip_npz_and_array_give_the_same_images(tmp_path):
    images = noise()
    folder = save_folder(tmp_path / "set", images)
    np.savez_compressed(tmp_path / "set.npz", images)
    np.savez(tmp_path / "named.npz", labels=np.arange(6), images=images)
    zipped = save_zip(tmp_path / "set.ZIP", folder)
    npz, named = str(tmp_path / "set.npz"), tmp_path / "named.npz"
    sources = [open_source(x) for x in (folder, zipped, images, npz, named)]
    for source in sources:
        np.testing.assert_array_equal(pixels_of(source), images)
        np.testing.assert_array_equal(pixels_of(source, start=4), images[4:])
        wanted = [source.ids[4], source.ids[1], "no such id"]
        found = source.read(wanted)
        assert set(found) == set(wanted[:2])
        np.testing.assert_array_equal(found[wanted[0]], images[4])
    assert [source.kind for source in sources] == ["folder", "zip", "array", "npz", "npz"]
    assert sources[1].ids == sources[0].ids
    assert sources[2].ids == sources[3].ids == ["0", "1", "2", "3", "4", "5"]


def test_gray_arrays_become_rgb():
    gray = noise()[..., 0]
    for array in (gray, gray[..., None]):
        np.testing.assert_array_equal(pixels_of(open_source(array)), np.repeat(gray[..., None], 3, axis=3))


def test_photographs_are_turned_upright(tmp_path):
    image = Image.fromarray(noise(1)[0])
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise to see it upright
    image.save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(pixels_of(open_source(tmp_path))[0], np.rot90(noise(1)[0], -1))


def test_sixteen_bit_grays_keep_their_range(tmp_path):
    Image.fromarray(np.array([[0, 255, 256, 65535]], np.uint16)).save(tmp_path / "a.png")
    assert pixels_of(open_source(tmp_path))[0][0, :, 0].tolist() == [0, 0, 1, 255]


def test_unreadable_files_carry_their_reason_and_leave_the_others_alone(tmp_path, monkeypatch):
    folder = save_folder(tmp_path / "set", noise(1))
    (folder / "bad.png").write_bytes(b"not a picture")
    (folder / "gone.png").symlink_to(tmp_path / "nowhere.png")
    Image.new("F", (2, 2)).save(folder / "float.tif")
    buffer = io.BytesIO()
    Image.fromarray(noise(1, 64, 64)[0]).save(buffer, "jpeg")
    (folder / "half.jpg").write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])
    Image.new("RGB", (100, 100)).save(folder / "huge.png")
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", str(12 * 9999))
    source = open_source(folder)
    errors = {sample.id: sample.error for sample in source.samples()}
    assert errors["000.png"] is None
    assert errors["bad.png"] == "no image that can be recognized"
    assert errors["gone.png"] == "no such file or directory"
    assert "mode F has no 8-bit range" in errors["float.tif"]
    assert "truncated" in errors["half.jpg"]
    assert errors["huge.png"] == "100x100 pixels are more than the 9,999 that FINC_EVAL_MAX_DECODED allows"
    assert set(source.read(source.ids)) == {"000.png"}


def test_a_damaged_member_of_a_zip_is_noticed_though_it_decodes(tmp_path):
    path = tmp_path / "set.zip"
    buffer = io.BytesIO()
    Image.fromarray(noise(1)[0]).save(buffer, "bmp")
    picture = buffer.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.bmp", picture + bytes(300_000))  # Pillow stops reading long before the end
    path.write_bytes(path.read_bytes().replace(picture[-8:-4], b"\1\2\3\4", 1))
    (sample,) = open_source(path).samples()
    assert sample.pixels is None
    assert "CRC" in sample.error


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("kind", "name"), [("zip", "a/b.png"), ("npz", "x.npy")])
def test_two_members_of_one_name_are_refused(tmp_path, kind, name):
    content = io.BytesIO()
    np.save(content, np.zeros((2, 8, 8, 3), np.uint8))
    with zipfile.ZipFile(tmp_path / f"a.{kind}", "w") as archive:
        archive.mkdir("a"), archive.mkdir("a")
        archive.writestr(name, content.getvalue())
    if kind == "npz":
        assert len(open_source(tmp_path / "a.npz").ids) == 2, "folders may be listed twice"
    with zipfile.ZipFile(tmp_path / f"a.{kind}", "a") as archive:
        archive.writestr(name, b"")
    assert f"a.{kind} has 2 members called '{name}': give each a name of its own" in message(
        open_source, tmp_path / f"a.{kind}"
    )


def test_a_member_of_a_zip_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "set.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", bytes(100_000))
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "99kB")
    (sample,) = open_source(tmp_path / "set.zip").samples()
    assert sample.error == "a file of 100 kB, which takes 200 kB when decoded, above the 99 kB of FINC_EVAL_MAX_DECODED"


def test_the_manifest_follows_the_bytes_and_not_the_place(tmp_path):
    images = noise()
    first = save_folder(tmp_path / "first", images)
    second = save_folder(tmp_path / "elsewhere" / "second", images)
    manifest = open_source(first).manifest()
    assert (manifest.kind, manifest.n, len(manifest.digest)) == ("folder", 6, 64)
    assert open_source(second).manifest().digest == manifest.digest
    assert open_source(save_zip(tmp_path / "set.zip", first)).manifest().digest == manifest.digest

    data = bytearray((second / "003.png").read_bytes())
    data[-1] ^= 1
    (second / "003.png").write_bytes(data)
    changed = open_source(second).manifest().digest
    (first / "003.png").rename(first / "0030.png")
    renamed = open_source(first).manifest().digest
    assert len({manifest.digest, changed, renamed}) == 3


def test_the_manifest_of_rows_follows_values_and_shape(tmp_path):
    images = noise()
    np.savez(tmp_path / "a.npz", images)
    changed = images.copy()
    changed[5, 0, 0, 0] ^= 1
    digests = [open_source(x).manifest().digest for x in (images, changed, images.reshape(6, 7, 9, 3))]
    assert len(set(digests)) == 3
    assert open_source(tmp_path / "a.npz").manifest().digest == digests[0]


def test_the_manifest_tells_how_far_it_is():
    calls = []
    open_source(noise(300)).manifest(lambda *call: calls.append(call))
    assert calls == [("check samples", 256, 300), ("check samples", 300, 300)]


def test_fingerprints_are_equal_for_copies_only():
    image = noise(1)[0]
    assert fingerprint(image) == fingerprint(np.asfortranarray(image.copy()))
    assert fingerprint(image) != fingerprint(image.reshape(7, 9, 3))
    assert fingerprint(image) != fingerprint(image ^ 1)
    assert 0 <= fingerprint(image) < 2**64


@pytest.mark.parametrize("n", [0, 1, TOGETHER, 8 * TOGETHER, 8 * TOGETHER + 3, 2_001])
@pytest.mark.parametrize("threads", [1, 3])
def test_work_in_parts_is_ordered_and_bounded(n, threads):
    begun, done, most = [], 0, 2 * TOGETHER * threads
    for square in in_parts(lambda x: begun.append(x) or x * x, range(n), threads):
        assert square == done**2 and len(begun) - done <= most
        done += 1
    assert done == n and sorted(begun) == list(range(n))


def test_many_samples_are_handed_over_in_parts_and_few_alone(monkeypatch):
    submitted = []
    submit = ThreadPoolExecutor.submit
    monkeypatch.setattr(ThreadPoolExecutor, "submit", lambda pool, *given: submitted.append(1) or submit(pool, *given))
    for n, parts in {7: 7, 400: 100}.items():
        submitted.clear()
        assert list(in_parts(str, range(n), 2)) == [str(number) for number in range(n)]
        assert len(submitted) == parts


def test_work_in_parts_ends_with_its_consumer_and_with_an_error():
    begun = []
    with closing(in_parts(begun.append, range(10_000), 2)) as made:
        next(made)
    assert len(begun) < 100
    with pytest.raises(ZeroDivisionError):
        list(in_parts(lambda number: 1 // (number - 30), range(10_000), 2))


@pytest.mark.skipif(sys.platform != "linux", reason="needs files that state no size")
def test_a_file_that_states_too_little_is_read_whole():
    with open_unbuffered("/proc/self/maps") as stream:
        assert len(whole(stream)) > 4096


def test_work_ahead_is_ordered_and_bounded():
    taken = []
    results = ahead(lambda x: x * x, (taken.append(x) or x for x in range(10_000)))
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    assert len(taken) <= 4 * (os.cpu_count() or 1) + 3
    results.close()


def test_a_folder_that_vanishes_midway_leaves_failures_and_no_error(tmp_path):
    folder = save_folder(tmp_path / "set", noise(100))
    samples = open_source(folder).samples()
    first = next(samples)
    shutil.rmtree(folder)
    rest = list(samples)
    assert first.error is None
    assert len(rest) == 99
    assert rest[-1].error == "no such file or directory"


@pytest.mark.parametrize("kind", ["folder", "zip", "array"])
def test_any_sample_can_be_had_by_its_number(tmp_path, kind):
    images = noise()
    folder = save_folder(tmp_path / "set", images)
    path = {"folder": folder, "zip": save_zip(tmp_path / "set.zip", folder), "array": images}[kind]
    np.testing.assert_array_equal(open_source(path).sample(4).pixels, images[4])


def test_many_threads_read_one_zip(tmp_path):
    images = noise(40, 64, 64)
    source = open_source(save_zip(tmp_path / "set.zip", save_folder(tmp_path / "set", images)))
    for number, sample in enumerate(ahead(lambda number: source.sample(number % 40), range(400), 8)):
        np.testing.assert_array_equal(sample.pixels, images[number % 40])


def test_a_missing_path_is_named_with_its_nearest_neighbor(tmp_path):
    save_folder(tmp_path / "generated", noise(1))
    assert f"did you mean {tmp_path / 'generated'}?" in message(open_source, tmp_path / "genrated")
    assert "nor does the folder" in message(open_source, tmp_path / "no" / "such")


def test_a_folder_without_images_says_what_it_holds(tmp_path):
    assert "holds nothing: images end in" in message(open_source, tmp_path)
    (tmp_path / "a.txt").write_text("x")
    assert "holds no images, only other files (1 x .txt)" in message(open_source, tmp_path)


@pytest.mark.parametrize(("name", "kind"), [("set.zip", "a .zip file"), ("set.npz", "an .npz")])
def test_a_zip_that_is_none_is_refused(tmp_path, name, kind):
    (tmp_path / name).write_bytes(b"PK but no more")
    assert f"cannot be read as {kind} (File is not a zip file)" in message(open_source, tmp_path / name)


def test_other_files_are_refused(tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    (tmp_path / "a.pdf").write_text("x")
    assert "is a single image: pass the folder" in message(open_source, tmp_path / "a.png")
    assert "is not a set of samples" in message(open_source, tmp_path / "a.pdf")
    assert "item 0 of the dataset is of type int" in message(open_source, [1])
    assert "got dict" in message(open_source, {"a": 1})
    assert "got int" in message(open_source, 3)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (noise() / 255, "(255 * x).round()"),
        (noise().astype(np.int64), "dtype int64, but images must be uint8"),
        (noise().transpose(0, 3, 1, 2), "pass x.transpose(0, 2, 3, 1)"),
        (noise()[0, 0], "shape (7, 3)"),
        (noise(0), "holds no pixels"),
        (np.array([{}, None]), "dtype object"),
    ],
)
def test_arrays_of_another_layout_are_refused_as_arrays_and_in_npz(tmp_path, array, words):
    assert words in message(open_source, array)
    np.savez(tmp_path / "a.npz", array)
    assert words in message(open_source, tmp_path / "a.npz")


def test_an_npz_must_say_which_array_holds_the_images(tmp_path):
    np.savez(tmp_path / "a.npz", x=noise(), y=noise())
    assert "holds the arrays x, y: call the images arr_0 or images, or name them by image_key" in message(
        open_source, tmp_path / "a.npz"
    )
    np.savez(tmp_path / "only.npz", x=noise())
    assert len(open_source(tmp_path / "only.npz").ids) == 6


def test_an_npz_in_fortran_order_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", np.asfortranarray(noise()))
    assert "np.ascontiguousarray" in message(open_source, tmp_path / "a.npz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_npz_is_noticed_by_its_manifest(tmp_path, save):
    save(tmp_path / "a.npz", noise(50))
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[len(data) // 2] ^= 0x55
    (tmp_path / "a.npz").write_bytes(data)
    assert "a.npz is damaged (arr_0.npy: " in message(open_source(tmp_path / "a.npz").manifest)


def test_an_npz_with_a_wrong_sum_is_noticed_though_it_unpacks(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", np.zeros((50, 64, 64, 3), np.uint8))
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[data.index(b"PK\x01\x02") + 16] ^= 0x55
    (tmp_path / "a.npz").write_bytes(data)
    assert "a.npz is damaged (arr_0.npy: Bad CRC-32" in message(open_source(tmp_path / "a.npz").manifest)


def test_links_in_a_circle_are_failures_and_pipes_are_no_samples(tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    (tmp_path / "b.png").symlink_to("b.png")
    os.mkfifo(tmp_path / "c.png")
    errors = {sample.id: sample.error for sample in open_source(tmp_path).samples()}
    assert errors == {"a.png": None, "b.png": "too many levels of symbolic links"}


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("x" * 5000, "is not a path that can be looked up"),
        ("~nobody-of-that-name/x", "begins with a user who has no home here"),
    ],
)
def test_what_is_no_path_is_refused(path, told):
    with pytest.raises(FincEvalError, match=told):
        open_source(path)


def test_an_npz_that_says_it_holds_more_than_it_does_is_refused_before_anything_is_made_for_it(tmp_path):
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (999999999999, 8, 8, 3), }"
    header += b" " * (117 - len(header)) + b"\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("arr_0.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(768))
    with pytest.raises(
        FincEvalError, match=r"is damaged \(arr_0.npy: \d+ bytes for the shape \(999999999999, 8, 8, 3\)\)"
    ):
        open_source(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["metadata.jsonl", "dataset.json"])
def test_annotations_nested_without_end_are_refused(tmp_path, name):
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    (tmp_path / name).write_text("[" * 100_000)
    with pytest.raises(FincEvalError, match=r"cannot be read .*repair it, or take it away"):
        open_source(tmp_path)


def test_annotations_damaged_within_a_zip_are_refused(tmp_path):
    picture = io.BytesIO()
    Image.new("RGB", (4, 4)).save(picture, "PNG")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.png", picture.getvalue())
        archive.writestr("metadata.csv", "file_name,label")
    (tmp_path / "a.zip").write_bytes((tmp_path / "a.zip").read_bytes().replace(b"file_name,label", b"file_name,lapel"))
    with pytest.raises(FincEvalError, match=r"a\.zip/metadata\.csv cannot be read"):
        open_source(tmp_path / "a.zip")
