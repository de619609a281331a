"""What each pair shows and the verdict of a run, by tables of faults that are planted in all or some of its pairs."""

import io

import numpy as np
import pytest
from _runs_of_scenes import OLD, SIDE, judge_pairs, noise, run_of, scenes
from _said import values
from PIL import Image
from scipy.ndimage import gaussian_filter

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.same_ids.pairs import align, measure
from finc_eval.same_ids.run_names import natural_order
from finc_eval.same_ids.verdict import judge_run

OTHERS = scenes(24, seed=13)


def ids(n):
    return [f"{row:04d}.png" for row in range(n)]


def judge(new, old, again=None):
    names = np.array(ids(len(old)))

    def table(first):
        return measure(align({"gen": names, "ref": names}, {"gen": run_of(first), "ref": run_of(old)}), Run())

    return judge_run(table(new), None if again is None else table(again), names.tolist())


def resized(picture, box, size=(SIDE, SIDE)):
    return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR, box))


def boxed(picture):
    found = np.zeros_like(picture)
    found[6:-6] = np.asarray(Image.fromarray(picture).resize((SIDE, SIDE - 12), Image.Resampling.BILINEAR))
    return found


def coded(picture, kind, quality):
    stored = io.BytesIO()
    Image.fromarray(picture).save(stored, kind, quality=quality)
    return np.asarray(Image.open(stored).convert("RGB"))


OF_ALL = {
    "mirrored": lambda one: one[:, ::-1],
    "upside down": lambda one: one[::-1],
    "turned left by 90°": np.rot90,
    "turned by 180°": lambda one: np.rot90(one, 2),
    "turned right by 90°": lambda one: np.rot90(one, 3),
    "transposed": lambda one: one.transpose(1, 0, 2),
    "red and blue exchanged": lambda one: one[..., ::-1],
    "red and green exchanged": lambda one: one[..., [1, 0, 2]],
    "red, green and blue rotated": lambda one: one[..., [2, 0, 1]],
    "red, green and blue rotated back": lambda one: one[..., [1, 2, 0]],
    "negative": lambda one: 255 - one,
    "mirrored, with red and blue exchanged": lambda one: one[:, ::-1, ::-1],
    "of another size (24 × 24 pixels, before 48 × 48 pixels)": lambda one: resized(one, None, (24, 24)),
    "turned gray": lambda one: np.repeat(one.mean(2, keepdims=True), 3, 2).astype(np.uint8),
    "black": lambda one: one * 0,
    "white": lambda one: one * 0 + 255,
    "noise": lambda one: np.random.default_rng(int(one.sum())).integers(0, 256, one.shape).astype(np.uint8),
    "cropped": lambda one: resized(one, (6, 6, 42, 42)),
    "within bars": boxed,
    "shifted": lambda one: np.roll(one, 9, 1),
}
"""What all pictures are made into, by what the run is then called."""


@pytest.mark.one_of_each("name", "n")
@pytest.mark.parametrize("name", OF_ALL)
@pytest.mark.parametrize("n", [24, pytest.param(4, marks=pytest.mark.long), 1])
def test_a_fault_of_all_pictures_breaks_the_run_and_names_it(name, n):
    new = [np.ascontiguousarray(OF_ALL[name](one)) for one in noise(OLD[:n], 2)]
    found = judge(new, OLD[:n])
    assert found.verdict == "broken"
    assert name in found.run
    assert found.broken.mean() >= 0.8


OF_IDS = {
    "ids are shifted by 1 (each shows a later picture)": lambda n: (np.arange(n) + 1) % n,
    "ids are shifted by 3 (each shows an earlier picture)": lambda n: (np.arange(n) - 3) % n,
    "ids are shifted by 12 (the halves are exchanged)": lambda n: (np.arange(n) + n // 2) % n,
    "ids are reversed": lambda n: np.arange(n)[::-1],
    "ids are exchanged within blocks of 8": lambda n: np.arange(n) // 8 * 8 + (3 * np.arange(n) + 1) % 8,
    "ids are exchanged": lambda n: np.random.default_rng(0).permutation(n),
    "nearly all pairs: one and the same picture": lambda n: np.zeros(n, int),
}
"""The id whose picture each id shows, by what the run is called."""


@pytest.mark.parametrize("name", OF_IDS)
def test_ids_that_are_exchanged_are_told_by_their_rule(name):
    some = noise(OLD[:24], 2)
    found = judge([some[row] for row in OF_IDS[name](24)], OLD[:24])
    assert (found.verdict, found.run) == ("broken", name)


OF_SOME = {
    "every 4th pair from 2: another picture": range(1, 24, 4),
    "every 2nd pair from 1: another picture": range(0, 24, 2),
    "pairs 7 to 12: another picture": range(6, 12),
    "all pairs: another picture": range(24),
    "25 % of the pairs: another picture": (0, 1, 5, 12, 20, 23),
    "": (3, 11),
}
"""Pairs that show another picture, by what the run is called."""


@pytest.mark.parametrize("name", OF_SOME)
def test_some_pairs_that_show_another_picture_are_listed_and_named_by_where_they_are(name):
    new = [OTHERS[row] if row in OF_SOME[name] else one for row, one in enumerate(noise(OLD[:24], 2))]
    found = judge(new, OLD[:24])
    assert (found.verdict, found.run) == ("broken", name)
    assert np.flatnonzero(found.broken).tolist() == [*OF_SOME[name]]


def paler(picture, part):
    light = picture.mean(2, keepdims=True)
    return np.clip(np.rint(light + part * (picture - light)), 0, 255).astype(np.uint8)


def of_one_color(picture):
    """Return a picture in shades of one color, as in old photographs."""
    return np.clip(np.rint(picture.mean(2, keepdims=True) * [1, 0.94, 0.85]), 0, 255).astype(np.uint8)


@pytest.mark.one_of_each("exchange", "n")
@pytest.mark.parametrize("exchange", [[2, 1, 0], [1, 0, 2], [0, 2, 1]])
@pytest.mark.parametrize("n", [24, 1, 10])
def test_channels_of_some_pale_pictures_that_are_exchanged_are_told(exchange, n):
    old = [paler(one, 0.17) for one in OLD[:n]]
    new = [one[..., exchange] if row % 2 == 0 else one for row, one in enumerate(noise(old, 1))]
    found = judge([np.ascontiguousarray(one) for one in new], old)
    assert (found.verdict, found.broken.tolist()) == ("broken", [row % 2 == 0 for row in range(n)])


CASTS = {
    "cooler": (of_one_color, [0.97, 1, 1.04]),
    "warmer": (of_one_color, [1.1, 1, 0.95]),
    "pale and cooler": (lambda one: paler(one, 0.17), [0.95, 1, 1.1]),
    "pale and greener": (lambda one: paler(one, 0.17), [0.95, 1.05, 0.95]),
    "gray and cooler": (lambda one: paler(one, 0), [0.95, 1, 1.1]),
}
"""What all pictures are, and the factor of each channel in another engine, which is no exchange of channels."""


@pytest.mark.one_of_each("name", "n")
@pytest.mark.parametrize("name", CASTS)
@pytest.mark.parametrize("n", [24, 1, 10])
def test_a_cast_of_pictures_of_little_color_is_no_exchange(name, n):
    kind, factors = CASTS[name]
    old = [kind(one) for one in OLD[:n]]
    new = [np.clip(np.rint(one * np.array(factors)), 0, 255).astype(np.uint8) for one in noise(old, 1)]
    assert not judge(new, old).broken.any()


def of_another_sampler(pictures, seed=0):
    """Return pictures whose coarse scene is the same, and whose details are others."""
    rng = np.random.default_rng(seed)
    found = []
    for one in pictures:
        details = gaussian_filter(rng.normal(size=(SIDE, SIDE, 1)), (1, 1, 0))
        coarse = gaussian_filter(one.astype(float), (3, 3, 0)) + 25 * details / details.std()
        found.append(np.clip(np.rint(coarse), 0, 255).astype(np.uint8))
    return found


BY_A_SAMPLER = {
    "mirrored": lambda one: one[:, ::-1],
    "upside down": lambda one: one[::-1],
    "turned right by 90°": lambda one: np.rot90(one, 3),
    "cropped": lambda one: resized(one, (7, 7, 41, 41)),
    "turned gray": lambda one: np.repeat(one.mean(2, keepdims=True), 3, 2).astype(np.uint8),
}
"""What pictures are made into by a fault of another sampler."""


def test_another_sampler_alone_breaks_no_pair():
    assert not judge(of_another_sampler(OLD[:24]), OLD[:24]).broken.any()


@pytest.mark.one_of_each(by=lambda name: name if name in ("cropped", "turned gray") else "a symmetry")
@pytest.mark.parametrize("name", BY_A_SAMPLER)
def test_a_fault_of_some_pictures_of_another_sampler_is_listed(name):
    rows, new = [1, 5, 12, 20], of_another_sampler(OLD[:24])
    for row in rows:
        new[row] = np.ascontiguousarray(BY_A_SAMPLER[name](new[row]))
    found = judge(new, OLD[:24])
    assert set(np.flatnonzero(found.broken)) <= set(rows) and found.broken.sum() >= 3
    assert name in found.causes[found.broken]


@pytest.mark.parametrize("name", ["mirrored", "upside down", "turned right by 90°"])
def test_a_symmetry_of_all_pictures_of_another_sampler_names_the_run(name):
    new = [np.ascontiguousarray(BY_A_SAMPLER[name](one)) for one in of_another_sampler(OLD[:24])]
    assert judge(new, OLD[:24]).run == f"all pictures are {name}"


def test_halves_that_change_places_are_no_symmetry():
    found = judge([np.roll(one, SIDE // 2, 1) for one in OLD[:24]], OLD[:24])
    assert found.verdict == "broken" and "mirrored" not in found.run


SAME = {
    "equal": lambda one: one,
    "noise": lambda one: noise([one], 3)[0],
    "JPEG": lambda one: coded(one, "JPEG", 85),
    "WebP": lambda one: coded(one, "WEBP", 90),
    "bfloat16": lambda one: np.clip(np.rint(one / 2.0) * 2, 0, 255).astype(np.uint8),
    "another filter": lambda one: resized(resized(one, None, (96, 96)), None),
    "brighter by 3 %": lambda one: np.clip(one * 1.03, 0, 255).astype(np.uint8),
}


@pytest.mark.one_of_each("name", "n")
@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("n", [24, 1, 4])
def test_another_engine_is_clean(name, n):
    found = judge([SAME[name](one) for one in OLD[:n]], OLD[:n])
    assert (found.verdict, found.run, found.broken.any()) == ("clean", "", False)


@pytest.mark.parametrize("n", [1, 4])
def test_few_pairs_that_are_moved_a_little_are_undecided(n):
    new = [np.roll(one, (2, 2), (0, 1)) for one in OLD[:n]]
    found = judge(new, OLD[:n])
    assert (found.verdict, found.broken.any()) == ("undecided", False)
    assert found.unclear.any()


def test_pictures_that_are_alike_are_unclear_and_never_the_same():
    rng = np.random.default_rng(0)
    alike = [np.clip(OLD[0] + 12 * rng.normal(size=(6, 6, 1)).repeat(8, 0).repeat(8, 1), 0, 255) for _ in range(8)]
    frames = [one.astype(np.uint8) for one in alike]
    found = judge([*frames[1:4], OTHERS[0], *frames[5:], frames[0]], frames)
    assert found.verdict == "broken"
    assert (found.broken | found.unclear).all()


def test_a_run_that_is_broken_as_its_baseline_is_undecided():
    new, again = noise(OLD[:24], 2), noise(OLD[:24], 1, seed=3)
    for row in (2, 9, 17):
        new[row], again[row] = OTHERS[row], OTHERS[row]
    found = judge(new, OLD[:24], again)
    assert (found.verdict, found.is_usual, found.broken.any()) == ("undecided", True, False)


def test_ids_are_in_the_order_of_their_numbers():
    names = ["10.png", "9.png", "b2", "b10", "1.png"]
    assert [names[place] for place in natural_order(names)] == ["1.png", "9.png", "10.png", "b2", "b10"]


@pytest.mark.one_of_each
@pytest.mark.parametrize("n", [4, 1])
def test_few_pairs_in_folders_are_compared_without_kinds_and_without_what_is_worse(tmp_path, monkeypatch, n):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "caches"))
    for folder, some in (("new", [one[:, ::-1] for one in OLD[:n]]), ("old", OLD[:n])):
        (tmp_path / folder).mkdir()
        for row, one in enumerate(some):
            Image.fromarray(np.ascontiguousarray(one)).save(tmp_path / folder / f"{row}.png")
    found = fe.compare(tmp_path / "new", tmp_path / "old", pairs="id", features=20)
    assert (found.by_id.verdict, found.kinds, found.by_id.worse) == ("broken", (), [])
    assert found.headline.startswith("Broken: ") and "mirrored" in found.by_id.run
    assert fe.compare(tmp_path / "old", tmp_path / "old", pairs="id", features=20).by_id.verdict == "clean"
    found.save(tmp_path / "a.h5")
    assert fe.load(tmp_path / "a.h5").by_id == found.by_id
    for text in (found.to_html(tmp_path / "a.html").read_text(), found.to_markdown(), found._repr_html_()):
        assert "Broken: " in text and "mirrored" in text


def saved(folder, pictures):
    folder.mkdir()
    for row, one in enumerate(pictures):
        if one is not None:
            Image.fromarray(np.ascontiguousarray(one)).save(folder / f"{row:04d}.png")
    return folder


LOST = {"one of four": (4, [2]), "all but one": (4, [0, 1, 3]), "some of many": (24, [5, 6])}
"""Number of pairs, and rows that the new run lacks."""


@pytest.mark.one_of_each("name", "is_cut")
@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_run_that_lacks_pictures_or_has_some_that_cannot_be_read_is_not_clean(tmp_path, monkeypatch, name, is_cut):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "caches"))
    n, lost = LOST[name]
    old = saved(tmp_path / "old", OLD[:n])
    new = saved(tmp_path / "new", [None if row in lost else one for row, one in enumerate(OLD[:n])])
    for row in lost if is_cut else []:
        (new / f"{row:04d}.png").write_bytes((old / f"{row:04d}.png").read_bytes()[:900])
    found = fe.compare(new, old, pairs="id", extractor="pixels", features=20, modes=1)
    assert (found.by_id.verdict, found.by_id.missing, found.by_id.broken) == ("undecided", len(lost), [])
    first = found.by_id.sentences["verdict"]
    assert found.headline.startswith(first) and values(first).startswith(f"{len(lost)} {n}")
    assert judge_pairs(old, new, extractor="pixels").verdict == "clean"


SENTENCES = {
    "equal": (1, lambda one: one, "changed", "is equal"),
    "darker": (1, lambda one: one // 2, "changed", "is not equal (PSNR "),
    "some darker": (4, lambda one: one // 2, "changed", "4 of the 4 "),
    "turned": (4, lambda one: np.rot90(one, 2), "broken", "(4 turned by 180°)"),
}
"""Number of pairs, what the new pictures are made into, the key of what is said, and words of it."""


@pytest.mark.parametrize("name", SENTENCES)
def test_few_pairs_have_sentences_of_their_own(tmp_path, monkeypatch, name):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "caches"))
    n, change, key, words = SENTENCES[name]
    new, old = saved(tmp_path / "new", [change(one) for one in OLD[:n]]), saved(tmp_path / "old", OLD[:n])
    found = fe.compare(new, old, pairs="id", features=20)
    said = found.by_id.sentences[key]
    assert words in said and said.rstrip(".") in found.headline


def test_vectors_without_pictures_tell_ids_that_are_shifted():
    rng = np.random.default_rng(0)
    ref = rng.normal(size=(40, 16)).astype(np.float32)
    near = (ref + rng.normal(0, 0.05, ref.shape)).astype(np.float32)
    assert judge_pairs(near, ref).verdict == "clean"
    found = judge_pairs(np.roll(near, 1, 0), ref)
    assert (found.verdict, found.run) == ("broken", "ids are shifted by 1 (each shows an earlier picture)")
