"""Grids of samples are left out where names say so, and else named; sets of several sizes are taken as they are."""

import warnings

import numpy as np
import pytest
from PIL import Image

import finc_eval as fe

CELL = 24


def scene(seed, width=CELL, height=CELL):
    """A smooth picture with a disc, of any size."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width] / max(width, height)
    picture = rng.uniform(40, 215, 3) + 30 * (x * rng.normal() + y * rng.normal())[..., None]
    disc = (x - rng.uniform(0.2, 0.8)) ** 2 + (y - rng.uniform(0.2, 0.8)) ** 2 < 0.03
    picture[disc] = rng.uniform(0, 255, 3)
    return np.clip(picture + rng.normal(0, 2, picture.shape), 0, 255).astype(np.uint8)


def grid(cells, rows, columns, padding=0, frame=True):
    """Samples side by side, as save_image, contact sheets and txt2img.py put them."""
    around = padding if frame else 0
    height, width = cells[0].shape[:2]
    whole = np.zeros(
        (rows * height + (rows - 1) * padding + 2 * around, columns * width + (columns - 1) * padding + 2 * around, 3),
        np.uint8,
    )
    for number, one in enumerate(cells[: rows * columns]):
        top = around + number // columns * (height + padding)
        left = around + number % columns * (width + padding)
        whole[top : top + height, left : left + width] = one
    return whole


SCENES = [scene(seed) for seed in range(32)]
SAMPLES = {f"{number:05d}.png": one for number, one in enumerate(SCENES)}


def below(folder, files):
    return {f"{folder}/{name}": one for name, one in files.items()}


def grids(name, rows, columns, padding=0, frame=True):
    """As many grids as show all samples."""
    cells = rows * columns
    return {
        name.format(number): grid(SCENES[number * cells :], rows, columns, padding, frame)
        for number in range(-(-len(SCENES) // cells))
    }


# Names say that they are grids: left out, and counted.
LEFT_OUT = {
    "txt2img.py": below("samples", SAMPLES) | grids("grid-{:04d}.png", 2, 4),
    "txt2img.py, the last batch is short": below("samples", SAMPLES) | {"grid-0000.png": grid(SCENES[:3], 1, 3)},
    "in the same folder": SAMPLES | grids("grid-{:04d}.png", 2, 4),
    "AUTOMATIC1111": below("txt2img-images", SAMPLES) | below("txt2img-grids", grids("grid-{:04d}-77.png", 4, 4)),
    "save_image": SAMPLES | grids("epoch_10_grid.png", 4, 8, padding=2),
    "contact sheet": SAMPLES | grids("contact_sheet.png", 4, 8, padding=4, frame=False),
    "Grid.JPG": SAMPLES | grids("Grid.JPG", 4, 8),
    "beside samples/, scaled": below("samples", SAMPLES) | {"grid.png": np.zeros((30, 31, 3), np.uint8)},
}

# No name says so: named in a warning.
NAMED = {
    "save_image of a batch": SAMPLES | grids("epoch_10.png", 4, 8, padding=2),
    "rows": SAMPLES | grids("all_{}.png", 2, 4),
    "many": SAMPLES | grids("x{}.png", 2, 2),
    "one row": SAMPLES | grids("x{}.png", 1, 8, padding=2),
    "contact sheet without a frame": SAMPLES | grids("overview.png", 4, 8, padding=5, frame=False),
}

# Sets that are what they are.
LEGITIMATE = {
    "one size": SAMPLES,
    "mixed sizes": {
        f"{i}.png": scene(i, *size)
        for i, size in enumerate(((30, 20), (25, 17), (40, 40), (60, 40), (33, 50), (20, 30)) * 5)
    },
    "thumbnails, and a picture of twice the size": SAMPLES | {"large.png": scene(99, 2 * CELL, 2 * CELL)},
    "thumbnails, and three of three times the size": SAMPLES
    | {f"large{i}.png": scene(90 + i, 3 * CELL, 3 * CELL) for i in range(3)},
    "buckets of SDXL": {
        f"{i}.png": scene(i, *size)
        for i, size in enumerate(((32, 32), (36, 28), (28, 36), (39, 26), (26, 39), (42, 24), (48, 20)) * 4)
    },
    "two sizes, half of each": SAMPLES | {f"b{i}.png": scene(i, 2 * CELL, CELL) for i in range(30)},
    "a class of grids": {f"grid_{name}": one for name, one in SAMPLES.items()},
    "a class of grids among others": SAMPLES | {f"grid/{i}.png": scene(50 + i) for i in range(20)},
    "pictures called grid, of the same size": SAMPLES | {f"grid_{i}.png": scene(50 + i) for i in range(8)},
    "pictures called grid, of other sizes": SAMPLES | {"power-grid.png": scene(50, 37, 29)},
    "integrids": SAMPLES | {"integrids.png": scene(50, 2 * CELL, 2 * CELL)},
}


def extracted(files, folder, **options):
    """The set of a folder of these files, what was said, and the folder's cache."""
    for name, one in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(one).save(path, quality=95)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = fe.extract(str(folder), "pixels", **options)
    return found, " ".join(str(one.message) for one in told)


@pytest.mark.parametrize("case", LEFT_OUT)
def test_grids_that_are_called_so_are_left_out_and_counted(case, tmp_path):
    found, told = extracted(LEFT_OUT[case], tmp_path / "set")
    assert found.n == len(SCENES) and told == ""
    ((what, count),) = found.ignored.items()
    assert "samples" in what and count == len(LEFT_OUT[case]) - len(SCENES)
    assert not any("grid" in name.lower() or "sheet" in name for name in found.ids)


@pytest.mark.parametrize("case", NAMED)
def test_grids_of_any_name_are_named(case, tmp_path):
    found, told = extracted(NAMED[case], tmp_path / "set")
    first = sorted({*NAMED[case]} - {*SAMPLES})[0]
    assert found.n == len(NAMED[case])
    assert first in told and "grids of samples" in told and "exclude" in told


@pytest.mark.parametrize("case", LEGITIMATE)
def test_sets_of_several_sizes_are_taken_as_they_are(case, tmp_path):
    found, told = extracted(LEGITIMATE[case], tmp_path / "set")
    assert found.n == len(LEGITIMATE[case]) and told == "" and not found.ignored


def test_who_asks_for_grids_gets_them(tmp_path):
    found, _ = extracted(LEFT_OUT["in the same folder"], tmp_path / "set", include="*.png")
    assert found.n == 36


def test_a_comparison_says_which_samples_look_like_grids(tmp_path):
    others = {f"r{number}.png": scene(100 + number) for number in range(32)} | grids("grid-{:04d}.png", 2, 4)
    sets = {"gen": NAMED["save_image of a batch"], "ref": others}
    for name, files in sets.items():
        for one, pixels in files.items():
            (tmp_path / name).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / name / one)
    few = {"features": 20, "modes": 1, "method": fe.Finc(clusters=False)}
    found = fe.compare(tmp_path / "gen", tmp_path / "ref", extractor="pixels", **few)
    said = " ".join(found.warnings)
    assert "gen: epoch_10.png: pictures of 8 x 4 others, side by side" in said
    assert "4 x grids of samples" in said and found.ref.n == len(SCENES)
