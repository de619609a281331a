"""Sets of clips: what is found, what its clips are called, and that every way of reading gives the same."""

import itertools
import re
import zipfile

import numpy as np
import pytest
import torch
from _videos import encode, every_frame, gif, scene
from PIL import Image

from finc_eval.core.errors import FincEvalError
from finc_eval.samples import clip_source, video_files
from finc_eval.samples.clips import Clip, plan_windows
from finc_eval.samples.opening import open_clips, open_source
from finc_eval.samples.video import open_container

CLIP = Clip(4, 2, 3, "refuse")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Six videos in two folders, one of them short, one damaged, and some other files."""
    root = tmp_path_factory.mktemp("videos")
    files = {
        "walk/a.MP4": encode("mp4", scene(20, seed=1)),
        "walk/b.avi": encode("avi", scene(13, seed=2)),
        "walk/c.gif": gif(scene(9, seed=3)),
        "run/short.webm": encode("webm", scene(6, seed=4)),
        "run/cut.mkv": encode("mkv", scene(40, seed=5))[:700],
        "run/deep/d.mov": encode("mov", scene(8, seed=6)),
        "run/cover.png": b"no clip",
        "readme": b"",
        ".hidden.mp4": b"",
    }
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


@pytest.fixture(scope="module")
def archive(folder):
    path = folder.parent / "videos.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for entry in sorted(folder.rglob("*"), reverse=True):
            file.write(entry, entry.relative_to(folder))
    return path


def same(samples, expected):
    for first, second in itertools.zip_longest(samples, expected):
        assert (first.id, first.error, first.encoding) == (second.id, second.error, second.encoding)
        np.testing.assert_array_equal(first.pixels, second.pixels)


VIDEOS = ["run/cut.mkv", "run/deep/d.mov", "run/short.webm", "walk/a.MP4", "walk/b.avi", "walk/c.gif"]


def test_videos_are_found_at_any_depth_and_named_by_path_and_window(folder, archive):
    for path in (folder, archive):
        source = open_clips(path, CLIP)
        assert source.ids == [f"{video}#{window}" for video in VIDEOS for window in range(3)]
        assert (source.name, source.kind) == (str(path), "videos")
        assert source.ignored == {".png": 1, "no suffix": 1}
        assert open_clips(path, Clip(4, 2, 1, "refuse")).ids == VIDEOS


def test_folders_are_labels_where_every_video_lies_in_one(folder, tmp_path):
    labels = open_clips(folder, CLIP).labels
    assert labels == ["run"] * 3 + ["run/deep"] * 3 + ["run"] * 3 + ["walk"] * 9
    (tmp_path / "a.gif").write_bytes(gif(scene(5)))
    assert open_clips(tmp_path, CLIP).labels is None


def test_clips_have_the_frames_of_their_windows(folder):
    samples = {sample.id: sample for sample in open_clips(folder, CLIP).samples()}
    for video in ("walk/a.MP4", "walk/b.avi", "walk/c.gif", "run/deep/d.mov"):
        frames = every_frame((folder / video).read_bytes())
        for window, indices in enumerate(plan_windows(len(frames), None, CLIP).indices):
            np.testing.assert_array_equal(samples[f"{video}#{window}"].pixels, frames[indices])


def test_every_window_of_a_video_that_cannot_be_used_says_why(folder):
    errors = {sample.id: sample.error for sample in open_clips(folder, CLIP).samples() if sample.error}
    assert list(errors) == [f"run/{name}#{window}" for name in ("cut.mkv", "short.webm") for window in range(3)]
    assert set(list(errors.values())[3:]) == {"too short: 6 frames, and a window spans 7"}
    assert len(set(list(errors.values())[:3])) == 1


def test_a_file_that_vanishes_is_a_failure(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.gif").write_bytes(gif(scene(9)))
    source = open_clips(tmp_path, CLIP)
    before = source.manifest()
    (tmp_path / "a.gif").unlink()
    assert [sample.error for sample in source.samples()] == ["no such file or directory"] * 3 + [None] * 3
    assert source.manifest().digest != before.digest


@pytest.mark.parametrize("threads", [1, 2, pytest.param(16, marks=pytest.mark.long)])
def test_every_start_number_order_and_thread_gives_the_same_samples(folder, archive, monkeypatch, threads):
    expected = list(open_clips(folder, CLIP).samples())
    monkeypatch.setattr(clip_source, "THREADS", threads)
    for path in (folder, archive):
        source = open_clips(path, CLIP)
        for start in (0, 1, 5, 17, 18):
            same(source.samples(start), expected[start:])
        same(source.take([2, 3, 9, 11]), [expected[number] for number in (2, 3, 9, 11)])
        same(map(source.sample, range(17, -1, -1)), reversed(expected))
        found = source.read(["walk/a.MP4#2", "nothing", "run/cut.mkv#0", "walk/a.MP4#0"])
        assert list(found) == ["walk/a.MP4#0", "walk/a.MP4#2"]
        np.testing.assert_array_equal(found["walk/a.MP4#2"], expected[11].pixels)


def test_reading_may_stop_before_the_end(folder):
    samples = open_clips(folder, CLIP).samples()
    assert next(samples).id == "run/cut.mkv#0"
    samples.close()


def test_a_video_is_decoded_once_for_all_its_windows(folder, monkeypatch):
    opened = []
    read = video_files.read_windows

    def noted(*args, **more):
        opened.append(args[2])
        return read(*args, **more)

    monkeypatch.setattr(video_files, "read_windows", noted)
    list(open_clips(folder, CLIP).samples())
    assert opened == [[0, 1, 2]] * 6


def test_the_manifest_changes_when_a_byte_does_and_not_with_the_container(tmp_path, folder, archive):
    digest = open_clips(folder, CLIP).manifest().digest
    assert open_clips(archive, CLIP).manifest().digest == digest
    assert open_clips(folder, Clip(8, 1, 3, "loop")).manifest().digest == digest
    for video in VIDEOS:
        (tmp_path / video).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / video).write_bytes((folder / video).read_bytes())
    assert open_clips(tmp_path, CLIP).manifest().digest == digest
    data = bytearray((tmp_path / "walk/c.gif").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "walk/c.gif").write_bytes(data)
    assert open_clips(tmp_path, CLIP).manifest().digest != digest


def test_every_file_is_digested_once(folder, monkeypatch):
    opened = []
    settled = video_files.Settled
    monkeypatch.setattr(video_files, "Settled", lambda stream: opened.append(stream.name) or settled(stream))
    source = open_clips(folder, CLIP)
    assert len(list(source.contents(range(18)))) == 18 and len(opened) == 6
    assert len(list(source.contents([0, 1, 17]))) == 3 and len(opened) == 8


def test_one_video_is_a_set_of_its_windows(folder):
    source = open_clips(folder / "walk" / "a.MP4", CLIP)
    assert source.ids == ["a.MP4#0", "a.MP4#1", "a.MP4#2"] and source.labels is None
    assert source.name == str(folder / "walk" / "a.MP4")
    same((s for s in source.samples()), [source.sample(number) for number in range(3)])
    np.testing.assert_array_equal(source.sample(1).pixels, open_clips(folder, CLIP).sample(10).pixels)


# --- folders of frames ------------------------------------------------------------------------------------------------


def test_folders_of_frames_are_clips_in_natural_order(tmp_path):
    frames = scene(12)
    for clip, number in itertools.product(("walk/x", "run/y"), range(12)):
        (tmp_path / clip).mkdir(parents=True, exist_ok=True)
        Image.fromarray(frames[number] // (1 + (clip == "run/y"))).save(tmp_path / clip / f"frame{number}.png")
    source = open_clips(tmp_path, CLIP)
    assert source.ids == [f"{clip}#{window}" for clip in ("run/y", "walk/x") for window in range(3)]
    assert (source.kind, source.labels) == ("frames", ["run"] * 3 + ["walk"] * 3)
    plan = plan_windows(12, None, CLIP).indices
    samples = list(source.samples())
    np.testing.assert_array_equal([s.pixels for s in samples], [*(frames // 2)[plan], *frames[plan]])
    assert (samples[0].encoding.format, samples[0].encoding.fps) == ("PNG", None)
    before, (shown, *_) = list(source.contents(range(6))), plan[0]
    unseen = next(number for number in range(12) if number not in plan)
    for number, changed in ((unseen, 0), (shown, sum(int(shown) in row for row in plan))):
        Image.fromarray(frames[number] // 3).save(tmp_path / f"walk/x/frame{number}.png")
        assert sum(a != b for a, b in zip(source.contents(range(6)), before, strict=True)) == changed


def test_frames_at_the_top_are_one_clip_and_a_bad_frame_spoils_only_the_windows_that_need_it(tmp_path):
    root = tmp_path / "clip.d"
    root.mkdir()
    for number, frame in enumerate(scene(12)):
        Image.fromarray(frame).save(root / f"{number}.jpg")
    (root / "0.jpg").write_bytes(b"")
    samples = list(open_clips(root, CLIP).samples())
    assert [sample.id for sample in samples] == ["clip#0", "clip#1", "clip#2"]
    assert samples[0].error == "no image that can be recognized"


def sequence(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        Image.fromarray(np.full((8, 8, 3), 100, np.uint8)).save(folder / name)


SEVERAL = {
    "three videos": (
        [f"{video}_{k:04d}.png" for video in "abc" for k in range(8)],
        "3 series of files (a_* (8 files), b_* (8",
    ),
    "numbered videos": ([f"{k // 8}_{k % 8}.png" for k in range(16)], "2 series of files (0_* (8 files), 1_*"),
    "two streams": (
        [f"{stream}_{k:03d}.jpg" for stream in ("rgb", "depth") for k in range(8)],
        "2 series of files (depth_* (8 files), rgb_* (8 files))",
    ),
    "streams after the number": (
        [f"{k:03d}_{side}.png" for k in range(8) for side in "LR"],
        "2 series of files (*_L (8 files), *_R (8 files))",
    ),
    "masks": (
        [f"{k:03d}{mask}.png" for k in range(8) for mask in ("", "_mask")],
        "2 series of files (* (8 files), *_mask (8 files))",
    ),
    "a cover": ([*(f"{k:03d}.png" for k in range(8)), "cover.png"], "2 series of files (* (8 files), cover (1 file))"),
    "a copy": (
        [*(f"{k:03d}.png" for k in range(8)), "003 (1).png"],
        "2 series of files (* (8 files), 003 (1) (1 file))",
    ),
    "two formats": (
        [f"{k:04d}.{suffix}" for suffix in ("png", "jpg") for k in range(8)],
        "8 frames more than once, such as 0000.jpg and 0000.png",
    ),
    "two spellings": (["1.png", "01.png", "2.png"], "1 frame more than once, such as 01.png and 1.png"),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_a_folder_of_several_videos_is_refused(case, tmp_path):
    names, words = SEVERAL[case]
    sequence(tmp_path / "clips" / "one", names)
    with pytest.raises(FincEvalError, match=re.escape(words)):
        open_clips(tmp_path / "clips", CLIP)


GAPS = {
    "four frames": ("frame{}.png", [0, 1, 2, 3, 8, 9, 10, 11], "frames are missing between 3 and 8"),
    "a frame": ("frame{}.png", [*range(5), *range(6, 12)], "frames are missing between 4 and 6"),
    "number in parentheses": ("frame ({}).png", [*range(5), *range(6, 12)], "frames are missing between 4 and 6"),
    "number in the middle": ("f_{:04d}_v2.png", [*range(5), *range(6, 12)], "frames are missing between 4 and 6"),
    "none, from 1": ("frame{}.png", range(1, 12), None),
    "none, in steps": ("frame{}.png", range(0, 55, 5), None),
    "none, rounded steps": ("frame{}.png", [0, 33, 67, 100, 133, 167, 200, 233], None),
    "none, without numbers in common": ("{}.png", "abcdefghij", None),
}


@pytest.mark.parametrize("case", GAPS)
def test_a_video_with_a_gap_in_its_frames_is_a_failure(case, tmp_path):
    name, numbers, fault = GAPS[case]
    sequence(tmp_path / "clips" / "one", [name.format(number) for number in numbers])
    for sample in open_clips(tmp_path / "clips", CLIP).samples():
        assert sample.error is None if fault is None else sample.error.startswith(fault)


def test_folders_of_frames_beside_videos_are_told(folder, tmp_path):
    (tmp_path / "a.mp4").write_bytes((folder / "walk/a.MP4").read_bytes())
    sequence(tmp_path / "b", [f"{number}.png" for number in range(8)])
    with pytest.warns(UserWarning, match="1 video, and 8 images in 1 folder, which are left out"):
        assert open_clips(tmp_path, CLIP).ids == [f"a.mp4#{window}" for window in range(3)]


@pytest.mark.parametrize("suffix", ["webp", "png"])
def test_animations_are_videos_and_their_pictures_are_not_frames(suffix, tmp_path):
    pictures = [Image.fromarray(frame) for frame in scene(9)]
    for name in "ab":
        options = {"lossless": True} if suffix == "webp" else {}
        pictures[0].save(
            tmp_path / f"{name}.{suffix}", save_all=True, append_images=pictures[1:], duration=40, **options
        )
    samples = list(open_clips(tmp_path, Clip(9, 1, 1, "refuse")).samples())
    assert [(sample.id, sample.error) for sample in samples] == [(f"a.{suffix}", None), (f"b.{suffix}", None)]
    np.testing.assert_array_equal(samples[0].pixels, scene(9))
    np.testing.assert_allclose(samples[0].times, np.arange(9) / 25)


def test_a_folder_without_videos_says_how_videos_end(tmp_path):
    (tmp_path / "notes.md").write_text("nothing")
    with pytest.raises(FincEvalError, match=r"holds no videos, only other files \(1 x .md\): videos end in .3gp, "):
        open_source(tmp_path, clip=CLIP)


# --- arrays -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def array():
    return np.stack([scene(9, seed=seed) for seed in range(5)])


def test_arrays_and_npz_files_hold_clips(array, tmp_path):
    plan = plan_windows(9, None, CLIP).indices
    np.savez_compressed(tmp_path / "clips.npz", images=array, labels=np.arange(5) % 2)
    opened = [
        open_clips(array, CLIP),
        open_clips(torch.from_numpy(array), CLIP),
        open_clips(tmp_path / "clips.npz", CLIP),
    ]
    digests = set()
    for source in opened:
        assert source.ids == [f"{row}#{window}" for row in range(5) for window in range(3)]
        samples = list(source.samples())
        np.testing.assert_array_equal([s.pixels for s in samples], array[:, plan].reshape(15, *array[0, plan[0]].shape))
        same(source.take([1, 7, 8]), [samples[number] for number in (1, 7, 8)])
        digests.add(source.manifest().digest)
        assert (
            list(source.contents([3, 4, 9])) == [*source.contents(range(15))][3:5] + [*source.contents(range(15))][9:10]
        )
    assert len(digests) == 1
    assert [source.labels for source in opened] == [None, None, [str(row % 2) for row in range(5) for _ in range(3)]]


def test_clips_of_just_the_length_are_taken_as_they_are(array):
    source = open_clips(array, Clip(9, 1, 1, "refuse", 16.0))
    assert source.ids == list("01234")
    np.testing.assert_array_equal([sample.pixels for sample in source.samples()], array)


def test_clips_that_are_too_short_fail_by_the_row(array):
    samples = list(open_clips(array, Clip(10, 1, 2, "refuse")).samples())
    assert [sample.error for sample in samples] == ["too short: 9 frames, and a window spans 10"] * 10


@pytest.mark.parametrize(
    ("shape", "dtype", "how"),
    [
        ((2, 3, 5, 8, 8), np.uint8, "pass x.transpose(0, 2, 3, 4, 1)"),
        ((2, 5, 3, 8, 8), np.uint8, "pass x.transpose(0, 1, 3, 4, 2)"),
        ((2, 5, 8, 8, 3), np.float32, "pass (255 * x).round().clip(0, 255).astype(np.uint8)"),
        ((0, 5, 8, 8, 3), np.uint8, "it holds no pixels"),
    ],
)
def test_arrays_of_another_layout_are_refused_with_the_way_out(shape, dtype, how, tmp_path):
    np.savez(tmp_path / "x.npz", np.zeros(shape, dtype))
    for source in (np.zeros(shape, dtype), tmp_path / "x.npz"):
        with pytest.raises(FincEvalError) as caught:
            open_clips(source, CLIP)
        assert str(caught.value).endswith(how)


def test_an_npz_of_images_says_that_clips_are_needed(tmp_path):
    np.savez(tmp_path / "x.npz", np.zeros((4, 8, 8, 3), np.uint8))
    with pytest.raises(FincEvalError, match="images need an extractor for images"):
        open_clips(tmp_path / "x.npz", CLIP)


def test_what_holds_no_clips_is_left_to_others(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    for source in (tmp_path, tmp_path / "a.txt", str(tmp_path / "*.mp4"), np.zeros((2, 4, 4, 3), np.uint8), [1], print):
        assert open_clips(source, CLIP) is None
    for source, message in ((tmp_path / "nothing.mp4", "does not exist"), (object(), "samples must be a path")):
        with pytest.raises(FincEvalError, match=message):
            open_source(source, clip=CLIP)


# --- real clips -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.long)], ids=["two", "all"])
def test_real_clips_have_the_frames_that_pyav_reads_one_by_one(assets, tmp_path, step):
    paths = sorted((assets / "clips").iterdir())[::step]
    assert len(paths) == 12 // step
    for path in paths:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    policies = [Clip(16, 1, 1, "refuse"), Clip(16, 2, 3, "loop"), Clip(16, 1, 2, "hold", 8.0)]
    sets = [open_clips(tmp_path, clip).samples() for clip in policies]
    for path in paths:
        frames = every_frame(path.read_bytes())
        with path.open("rb") as file, open_container(file) as container:
            rate = container.streams.video[0].average_rate
        for clip, samples in zip(policies, sets, strict=True):
            for window, indices in enumerate(plan_windows(len(frames), rate, clip).indices):
                sample = next(samples)
                assert sample.id == (f"{path.name}#{window}" if clip.windows > 1 else path.name)
                assert sample.error is None and sample.encoding.fps == float(rate)
                np.testing.assert_array_equal(sample.pixels, frames[indices])
    assert all(next(samples, None) is None for samples in sets)


def test_labels_and_prompts_of_a_table_beside_the_videos_belong_to_every_window(tmp_path):
    for name in ("a.mp4", "b.mp4"):
        (tmp_path / name).write_bytes(encode("mp4", scene(n=4)))
    (tmp_path / "metadata.csv").write_text("file_name,label,text\nb.mp4,two,a second\na.mp4,one,a first\n")
    source = open_clips(tmp_path, Clip(frames=2, stride=1, windows=2, short="loop"))
    assert source.ids == ["a.mp4#0", "a.mp4#1", "b.mp4#0", "b.mp4#1"]
    assert source.labels == ["one", "one", "two", "two"]
    assert source.prompts == ["a first", "a first", "a second", "a second"]


def test_a_video_in_a_zip_that_would_fill_the_memory_is_a_failure(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "set.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.mp4", bytes(100_000))
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "99kB")
    (sample,) = open_clips(tmp_path / "set.zip", Clip(frames=2, stride=1, windows=1, short="loop")).samples()
    assert sample.error == "a file of 100 kB, which takes 200 kB when decoded, above the 99 kB of FINC_EVAL_MAX_DECODED"


CHOSEN = [
    ({"include": "*.MP4"}, ["walk/a.MP4"], 7),
    ({"include": ["walk/*", "run/**"], "exclude": "*.mkv"}, [one for one in VIDEOS if not one.endswith(".mkv")], 2),
    ({"exclude": ["run/**", "*.gif"]}, ["walk/a.MP4", "walk/b.avi"], 5),
]


@pytest.mark.parametrize(("choice", "videos", "left_out"), CHOSEN, ids=["include", "both", "exclude"])
def test_patterns_choose_videos_and_what_they_leave_out_is_counted(choice, videos, left_out, folder, archive):
    for path in (folder, archive):
        source = open_source(path, clip=Clip(4, 2, 1, "refuse"), **choice)
        assert source.ids == videos
        assert source.ignored["left out by name"] == left_out


def test_patterns_choose_the_frames_of_one_of_two_streams(tmp_path):
    frames = scene(9, seed=1)
    for number, frame in enumerate(frames):
        for name, pixels in (("rgb", frame), ("depth", 255 - frame)):
            (tmp_path / "a").mkdir(exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / "a" / f"{name}_{number:03d}.png")
    with pytest.raises(FincEvalError, match="holds 2 series of files"):
        open_source(tmp_path, clip=Clip(9, 1, 1, "refuse"))
    (sample,) = open_source(tmp_path, clip=Clip(9, 1, 1, "refuse"), include="rgb_*").samples()
    np.testing.assert_array_equal(sample.pixels, frames)


@pytest.mark.parametrize(
    ("given", "choice", "words"),
    [
        ("folder", {"include": "*.wmv"}, "holds no videos or frames that the patterns choose"),
        ("array", {"include": "*"}, "include and exclude choose files by their names, and the array has none"),
        ("one file", {"exclude": "b*"}, "include and exclude choose files by their names"),
        ("folder", {"image_key": "a"}, "image_key, range and color are for images"),
    ],
    ids=["nothing chosen", "array", "one file", "key"],
)
def test_choices_that_a_set_of_clips_does_not_have_are_one_sentence(given, choice, words, folder):
    source = {"folder": folder, "array": np.zeros((2, 9, 4, 4, 3), np.uint8), "one file": folder / "walk/a.MP4"}[given]
    with pytest.raises(FincEvalError, match=words):
        open_source(source, clip=CLIP, **choice)
