"""Shards, datasets, iterators and subsets are sets like any other; labels and prompts ride along."""

import io
import json
import re
import tarfile
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

from finc_eval.core.errors import FincEvalError
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.samples.clips import CLIPS, Clip
from finc_eval.samples.opening import open_source
from finc_eval.samples.tar import expand

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 9, 7, 3), dtype=np.uint8)


def png(image):
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "png")
    return buffer.getvalue()


def save_tar(path, members):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def save_folder(path, names):
    for name, image in zip(names, IMAGES, strict=False):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path / name)
    return path


def shards(folder):
    """Two shards of three samples with their labels."""
    for number in range(2):
        members = {}
        for row in range(3):
            members[f"{row}.png"] = png(IMAGES[3 * number + row])
            members[f"{row}.cls"] = str(row).encode()
        save_tar(folder / f"train-{number:03}.tar", members)
    return folder


def pixels_of(source):
    return np.stack([sample.pixels for sample in source.samples()])


def message(call, *arguments, **named):
    with pytest.raises(FincEvalError) as caught:
        call(*arguments, **named)
    return str(caught.value)


# Tar shards


def test_shards_are_one_set_whether_as_folder_or_as_pattern(tmp_path):
    folder = open_source(shards(tmp_path))
    pattern = open_source(str(tmp_path / "train-{000..001}.tar"))
    for source in (folder, pattern):
        assert source.kind == "tar"
        assert source.ids == [f"train-00{shard}/{row}" for shard in range(2) for row in range(3)]
        assert source.labels == ["0", "1", "2"] * 2
        assert source.prompts is None
        np.testing.assert_array_equal(pixels_of(source), IMAGES)
        np.testing.assert_array_equal(source.sample(4).pixels, IMAGES[4])
    assert folder.manifest().digest == pattern.manifest().digest


def test_shards_hold_what_the_webdataset_package_finds_in_them(tmp_path):
    webdataset = pytest.importorskip("webdataset")
    path = tmp_path / "a.tar"
    with webdataset.TarWriter(str(path)) as writer:
        for row, image in enumerate(IMAGES):
            key = f"sub/{row:02}"
            table = {"caption": f"picture {row}", "label": row % 2}
            writer.write({"__key__": key, "png": image, "json": table, "seg.png": image})
    theirs = list(webdataset.WebDataset(str(path), shardshuffle=False).decode("rgb8"))
    ours = open_source(path)
    assert ours.ids == [f"a/{sample['__key__']}" for sample in theirs]
    assert ours.prompts == [sample["json"]["caption"] for sample in theirs]
    assert ours.labels == [str(sample["json"]["label"]) for sample in theirs]
    assert ours.ignored == {".seg.png": 6}
    np.testing.assert_array_equal(pixels_of(ours), np.stack([sample["png"] for sample in theirs]))


def test_a_text_beside_an_image_is_its_prompt(tmp_path):
    members = {"a.png": png(IMAGES[0]), "a.txt": b"a cat\n", "b.PNG": png(IMAGES[1]), "b.txt": "zwölf".encode()}
    assert open_source(save_tar(tmp_path / "x.tar", members)).prompts == ["a cat", "zwölf"]
    del members["b.txt"]
    assert "gives a prompt to 1 of 2 samples, but not to x/b" in message(
        open_source, save_tar(tmp_path / "x.tar", members)
    )


def test_shards_that_cannot_be_read_by_place_are_refused(tmp_path):
    path = save_tar(tmp_path / "s" / "a.tar", {"a.png": png(IMAGES[0])})
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as archive:
        archive.add(path, "a.png")
    assert "is compressed" in message(open_source, tmp_path / "b.tar.gz")
    (tmp_path / "cut.tar").write_bytes(path.read_bytes()[:600])
    assert "cannot be read as a .tar file" in message(open_source, tmp_path / "cut.tar")
    info = tarfile.TarInfo("a.png")
    info.pax_headers = {"GNU.sparse.map": "0,1,x"}
    (tmp_path / "forged.tar").write_bytes(info.tobuf(tarfile.PAX_FORMAT) + bytes(1024))
    assert "cannot be read as a .tar file" in message(open_source, tmp_path / "forged.tar")
    nameless = save_tar(tmp_path / "nameless.tar", {".": b"x", "a.png": png(IMAGES[0])})
    assert open_source(nameless).ids == ["nameless/a"]
    assert "3 shards, and 3 do not exist" in message(open_source, str(tmp_path / "no-{1..3}.tar"))
    two = save_tar(tmp_path / "two.tar", {"a.png": png(IMAGES[0]), "a.jpg": png(IMAGES[0])})
    assert "holds two images of the sample two/a" in message(open_source, two)
    none = save_tar(tmp_path / "none.tar", {"a.mp3": b"x"})
    assert "holds no images, only other files (1 x .mp3)" in message(open_source, none)


def test_a_shard_cut_short_after_it_was_opened_gives_failures(tmp_path):
    path = save_tar(tmp_path / "a.tar", {f"{row}.png": png(image) for row, image in enumerate(IMAGES)})
    source = open_source(path)
    path.write_bytes(path.read_bytes()[:3000])
    assert source.sample(0).error is None
    assert source.sample(5).error == "the file is cut short"


def test_a_shard_cut_short_in_a_text_is_one_sentence(tmp_path):
    save_tar(tmp_path / "s.tar", {"a.png": png(np.zeros((4, 4, 3), np.uint8)), "a.txt": b"x" * 5000})
    whole = (tmp_path / "s.tar").read_bytes()
    (tmp_path / "s.tar").write_bytes(whole[: whole.index(b"xxxx") + 100])
    assert "cannot be read as a .tar file" in message(open_source, tmp_path / "s.tar")


def test_patterns_expand_as_in_a_shell():
    assert expand("s-{08..10}.tar") == ["s-08.tar", "s-09.tar", "s-10.tar"]
    assert expand("{a,b}/{0..1}") == ["a/0", "a/1", "b/0", "b/1"]
    assert expand("plain.tar") == ["plain.tar"]


# Labels and prompts of files


def test_folders_are_labels_where_every_image_lies_in_one(tmp_path):
    folder = save_folder(tmp_path / "set", ["cat/1.png", "dog/big/2.png"])
    assert open_source(folder).labels == ["cat", "dog/big"]
    save_folder(folder, ["0.png"])
    assert open_source(folder).labels is None


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl"])
@pytest.mark.parametrize("zipped", [False, True])
def test_metadata_names_labels_and_prompts(tmp_path, name, zipped):
    folder = save_folder(tmp_path / "set", ["b.png", "a.png"])
    rows = [
        {"file_name": "a.png", "caption": 'a "cat", sleeping', "label": "3"},
        {"file_name": "b.png", "caption": "a dog", "label": "5"},
    ]
    if name == "metadata.csv":
        text = 'file_name,caption,label\na.png,"a ""cat"", sleeping",3\nb.png,a dog,5\n'
    else:
        text = "\n".join(map(json.dumps, rows))
    (folder / name).write_text(text, encoding="utf-8")
    if zipped:
        with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
            for file in folder.iterdir():
                archive.write(file, file.name)
    source = open_source(tmp_path / "set.zip" if zipped else folder)
    assert source.labels == ["3", "5"]
    assert source.prompts == ['a "cat", sleeping', "a dog"]


def test_a_row_has_its_name_under_any_key_that_holds_a_text(tmp_path):
    folder = save_folder(tmp_path / "set", ["a.png", "b.png"])
    rows = [{"file_name": None, "path": "a.png", "label": "x"}, {"label": "y", "File Name": "./b.png", "": 3}]
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert open_source(folder).labels == ["x", "y"]


def test_metadata_of_some_images_only_is_refused_and_that_of_another_purpose_passed_over(tmp_path):
    folder = save_folder(tmp_path / "set", ["a.png", "b.png"])
    (folder / "metadata.csv").write_text("file_name,label\na.png,1\n")
    assert "gives a label to 1 of 2 samples, but not to b.png" in message(open_source, folder)
    (folder / "metadata.csv").write_text("camera,lens\nx\n")
    assert open_source(folder).labels is None
    (folder / "metadata.csv").write_text("file_name,label\na.png,1\nb.png\n")
    assert "line 3 of" in (told := message(open_source, folder)) and "has 1 value for 2 columns: give" in told
    (folder / "metadata.csv").unlink()
    (folder / "metadata.jsonl").write_text("{")
    assert "metadata.jsonl: line 1 cannot be read" in message(open_source, folder)


def test_the_labels_of_stylegan_come_from_its_table(tmp_path):
    folder = save_folder(tmp_path / "set", ["00000/img0.png", "00000/img1.png"])
    table = {"labels": [["00000/img1.png", 7], ["00000/img0.png", 4]]}
    (folder / "dataset.json").write_text(json.dumps(table))
    assert open_source(folder).labels == ["4", "7"]
    (folder / "dataset.json").write_text(json.dumps({"labels": None}))
    assert open_source(folder).labels is None


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", '{"splits": 5}', '{"splits": []}', '{"splits": [{}]}'])
def test_a_damaged_list_of_splits_is_one_sentence(tmp_path, text):
    (tmp_path / "dataset_dict.json").write_text(text)
    assert re.search("dataset_dict.json (names no splits: save|cannot be read as JSON)", message(open_source, tmp_path))


@pytest.mark.parametrize("name", ["labels", "label", "arr_1"])
def test_an_npz_may_hold_labels(tmp_path, name):
    np.savez_compressed(tmp_path / "a.npz", arr_0=IMAGES, **{name: np.arange(6) % 3})
    assert open_source(tmp_path / "a.npz").labels == ["0", "1", "2", "0", "1", "2"]
    np.savez(tmp_path / "a.npz", arr_0=IMAGES, **{name: np.arange(5)})
    assert open_source(tmp_path / "a.npz").labels is None


def test_labels_change_the_metadata_of_a_manifest_and_not_its_digest(tmp_path):
    folder = save_folder(tmp_path / "set", ["a.png", "b.png"])
    plain = open_source(folder).manifest()
    (folder / "metadata.csv").write_text("file_name,label\na.png,1\nb.png,2\n")
    first = open_source(folder).manifest()
    (folder / "metadata.csv").write_text("file_name,label\na.png,1\nb.png,3\n")
    second = open_source(folder).manifest()
    assert plain.digest == first.digest == second.digest
    assert plain.metadata is None
    assert first.metadata != second.metadata


# Datasets


class Numbered:
    """A dataset as of torch: whatever `make` makes of an image, with the parity of its number."""

    def __init__(self, make, labeled=True):
        self.make, self.labeled = make, labeled

    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, number):
        image = self.make(IMAGES[number])
        return (image, torch.tensor(number % 2)) if self.labeled else image


@pytest.mark.parametrize(
    "make",
    [
        Image.fromarray,
        lambda x: x,
        lambda x: x.transpose(2, 0, 1),
        lambda x: torch.from_numpy(x),
        lambda x: torch.from_numpy(x).permute(2, 0, 1),
    ],
    ids=["pil", "array-hwc", "array-chw", "tensor-hwc", "tensor-chw"],
)
def test_datasets_give_images_in_any_usual_form(make):
    for labeled in (True, False):
        source = open_source(Numbered(make, labeled))
        assert source.kind == "dataset"
        np.testing.assert_array_equal(pixels_of(source), IMAGES)
        np.testing.assert_array_equal(source.sample(3).pixels, IMAGES[3])
        assert source.manifest().digest == open_source(IMAGES).manifest().digest
        assert source.labels == (["0", "1"] * 3 if labeled else None)


def test_a_tensor_three_pixels_wide_has_its_channels_first_and_an_array_last():
    square = IMAGES[0, :3, :3]
    (of_array,) = open_source([square]).samples()
    (of_tensor,) = open_source([torch.from_numpy(square)]).samples()
    np.testing.assert_array_equal(of_array.pixels, square)
    np.testing.assert_array_equal(of_tensor.pixels, square.transpose(1, 2, 0))


def test_gray_items_are_repeated_in_three_channels():
    gray = IMAGES[0, ..., 0]
    for item in (gray, gray[None], torch.from_numpy(gray)[None], Image.fromarray(gray)):
        (sample,) = open_source([item]).samples()
        np.testing.assert_array_equal(sample.pixels, np.repeat(gray[..., None], 3, axis=2))
        assert (sample.encoding.mode, sample.encoding.is_gray) == ("L", True)


@pytest.mark.parametrize(
    ("shape", "mode"), [((1, 5, 3), "RGB"), ((5, 1, 3), "RGB"), ((3, 1, 5), "RGB"), ((3, 5, 1), "L"), ((1, 3, 5), "L")]
)
def test_a_row_or_column_of_colored_pixels_is_not_gray(shape, mode):
    (sample,) = open_source([np.arange(0, 255, 17, dtype=np.uint8).reshape(shape)]).samples()
    assert (sample.encoding.mode.split("/")[0], sample.encoding.is_gray) == (mode, mode == "L")


def test_items_of_another_kind_are_refused_with_what_to_do():
    assert "(255 * x).round()" in message(open_source, Numbered(lambda x: torch.from_numpy(x) / 255))
    assert "drop the alpha channel" in message(open_source, [np.zeros((4, 5, 4), np.uint8)])
    assert "a.png, which does not exist" in message(open_source, ["a.png"])
    assert "is empty" in message(open_source, [])


def test_an_item_that_cannot_be_read_is_a_failure():
    class Broken(Numbered):
        def __getitem__(self, number):
            if number == 2:
                raise RuntimeError("the disk is on fire")
            return super().__getitem__(number)

    errors = [sample.error for sample in open_source(Broken(Image.fromarray)).samples()]
    assert errors == [None, None, "the disk is on fire", None, None, None]


def test_torchvision_names_its_classes(tmp_path):
    datasets = pytest.importorskip("torchvision.datasets")
    folder = save_folder(tmp_path / "set", ["cat/1.png", "dog/2.png", "dog/3.png"])
    source = open_source(datasets.ImageFolder(str(folder)))
    assert source.labels == ["cat", "dog", "dog"]
    np.testing.assert_array_equal(pixels_of(source), IMAGES[:3])


@pytest.fixture
def saved(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "picture": datasets.Image(),
            "kind": datasets.ClassLabel(names=["even", "odd"]),
            "caption": datasets.Value("string"),
        }
    )
    rows = {
        "picture": [{"bytes": png(image), "path": None} for image in IMAGES],
        "kind": [row % 2 for row in range(6)],
        "caption": [f"number {row}" for row in range(6)],
    }
    return datasets.Dataset.from_dict(rows, features=features), tmp_path


def test_a_hugging_face_dataset_is_read_from_its_folder_and_as_it_is(saved):
    dataset, folder = saved
    dataset.save_to_disk(str(folder / "x"))
    for source in (open_source(folder / "x"), open_source(dataset)):
        assert source.kind == "hugging-face"
        np.testing.assert_array_equal(pixels_of(source), IMAGES)
        assert source.labels == ["even", "odd"] * 3
        assert source.prompts == [f"number {row}" for row in range(6)]
        assert source.sample(0).encoding.format == "PNG"


def test_a_hugging_face_dataset_must_be_one_split_with_one_image_column(saved):
    import datasets

    dataset, folder = saved
    datasets.DatasetDict({"train": dataset, "test": dataset}).save_to_disk(str(folder / "splits"))
    assert "holds the splits train, test: pass the folder of one" in message(open_source, folder / "splits")
    two = datasets.concatenate_datasets(
        [dataset, dataset.rename_columns({"picture": "more", "kind": "k", "caption": "c"})], axis=1
    )
    assert "has the image columns picture, more" in message(open_source, two)
    assert "has no column of images, it has kind (int64), caption (string): cast paths" in message(
        open_source, dataset.remove_columns("picture")
    )


# Iterators


def batches(labeled=False):
    for start in (0, 4):
        images = IMAGES[start : start + 4]
        yield (images, np.arange(start, start + len(images))) if labeled else images


@pytest.mark.parametrize(
    "make",
    [
        lambda: iter(IMAGES),
        batches,
        lambda: (torch.from_numpy(batch).permute(0, 3, 1, 2) for batch in batches()),
        lambda: ([Image.fromarray(image) for image in batch] for batch in batches()),
        lambda: lambda count: IMAGES[:count],
    ],
    ids=["images", "batches", "tensors", "lists of PIL", "function"],
)
def test_iterators_of_images_and_batches_are_sets_that_are_read_once(make):
    source = open_source(make(), n=6)
    assert (source.kind, source.once) == ("iterator", True)
    assert "0 of 6 images of the iterator have been read" in message(source.manifest)
    np.testing.assert_array_equal(pixels_of(source), IMAGES)
    assert source.manifest().digest == open_source(IMAGES).manifest().digest
    assert "can be read only once" in message(source.samples)


def test_labels_of_batches_and_of_data_loaders_are_kept():
    source = open_source(batches(labeled=True), n=6)
    list(source.samples())
    assert source.labels == ["0", "1", "2", "3", "4", "5"]

    data = torch.utils.data.TensorDataset(torch.from_numpy(IMAGES).permute(0, 3, 1, 2), torch.arange(6))
    source = open_source(torch.utils.data.DataLoader(data, batch_size=4))
    np.testing.assert_array_equal(pixels_of(source), IMAGES)
    assert source.labels == ["0", "1", "2", "3", "4", "5"]


def test_an_iterator_may_go_on_but_not_end_early():
    endless = (image for _ in iter(int, 1) for image in IMAGES)
    assert len(list(open_source(endless, n=10).samples())) == 10
    assert "ended after 6 of 7 images: pass n=6" in message(list, open_source(iter(IMAGES), n=7).samples())


def test_an_iterator_must_say_how_many_images_it_has():
    assert "pass their number as n" in message(open_source, iter(IMAGES))
    assert "pass their number as n" in message(open_source, lambda count: IMAGES[:count])
    assert "must take the number of images" in message(open_source, lambda: IMAGES, n=3)

    class Batches:
        def __len__(self):
            return 2

        def __iter__(self):
            return batches()

    assert "its length counts batches" in message(list, open_source(Batches()).samples())
    assert len(list(open_source(Batches(), n=6).samples())) == 6


def test_iterators_of_something_else_are_refused():
    assert "yields a str" in message(list, open_source(iter(["a"]), n=1).samples())
    assert "(255 * x).round()" in message(list, open_source(iter(IMAGES / 255), n=6).samples())
    assert "gave a NoneType" in message(list, open_source(lambda count: None, n=6).samples())
    assert "4 images with 3 labels" in message(list, open_source(iter([(IMAGES[:4], [1, 2, 3])]), n=4).samples())


# Subsets, and inputs that are not sets


def test_a_subset_is_seeded_and_keeps_order_labels_and_pixels(tmp_path):
    np.savez(tmp_path / "a.npz", arr_0=np.repeat(IMAGES, 20, axis=0), labels=np.arange(120))
    whole = open_source(tmp_path / "a.npz")
    part = open_source(tmp_path / "a.npz", n=30)
    assert len(part.ids) == 30
    assert (part.kind, part.name) == ("npz", whole.name)
    assert part.ids == part.labels == sorted(part.ids, key=int)
    for sample in part.samples():
        np.testing.assert_array_equal(sample.pixels, IMAGES[int(sample.id) // 20])
    assert open_source(tmp_path / "a.npz", n=30).manifest() == part.manifest()
    assert open_source(tmp_path / "a.npz", n=30, seed=1).ids != part.ids
    np.testing.assert_array_equal(part.sample(7).pixels, IMAGES[int(part.ids[7]) // 20])
    assert list(part.read([part.ids[3], "none"])) == [part.ids[3]]
    assert open_source(tmp_path / "a.npz", n=120).ids == whole.ids


def test_a_file_more_changes_at_most_one_sample_of_a_subset(tmp_path):
    folder = save_folder(tmp_path / "set", [f"{letter}.png" for letter in "abcdef"])
    before = set(open_source(folder, n=3).ids)
    for letter in "ghi":
        save_folder(folder, [f"{letter}.png"])
        after = set(open_source(folder, n=3).ids)
        assert len(before - after) <= 1
        before = after


def test_labels_that_a_dataset_learns_late_reach_its_subset():
    part = open_source(Numbered(Image.fromarray), n=4)
    part.manifest()
    assert part.labels == [str(int(name) % 2) for name in part.ids]


def test_more_samples_than_there_are_cannot_be_asked_for():
    assert "has 6 samples, but n is 7" in message(open_source, IMAGES, n=7)
    assert "at least 1, got 0" in message(open_source, IMAGES, n=0)


def test_a_tensor_is_a_set_in_either_layout():
    for tensor in (torch.from_numpy(IMAGES), torch.from_numpy(IMAGES).permute(0, 3, 1, 2)):
        np.testing.assert_array_equal(pixels_of(open_source(tensor)), IMAGES)


def test_the_extractors_that_videos_are_told_of_are_those_that_come_with_finc_eval():
    cards = [card for name in available_cards() if (card := load_card(name)).clip is not None]
    come_with_it = [card.name for card in cards if card.weights is None or card.weights.package]
    assert re.findall(r"(\S+) \(", CLIPS) == come_with_it


def test_videos_need_an_extractor_for_clips_and_clips_need_videos(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.mp4").write_bytes(b"x")
    assert "holds no images, but videos (1 x .mp4): choose an extractor for clips" in message(
        open_source, tmp_path / "set"
    )
    assert "is a video: choose an extractor for clips" in message(open_source, tmp_path / "set" / "a.mp4")
    assert "choose an extractor for clips" in message(open_source, IMAGES[None])
    clip = Clip(frames=4, stride=1, windows=1, short="loop")
    assert "the extractor takes clips" in message(open_source, IMAGES, clip=clip)
    assert open_source(IMAGES[None], clip=clip).ids == ["0"]


@pytest.mark.parametrize("pattern", ["s-{0..99999999}.tar", "{0..9}{0..9}{0..9}{0..9}{0..9}{0..1}.tar"])
def test_a_pattern_that_names_more_shards_than_anybody_has_is_refused(pattern):
    assert "names more than 100000 shards" in message(open_source, pattern)
