"""Motion blur has one name, whichever photographs it is compared with, and plain blur another."""

import io
import zipfile

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

import finc_eval as fe
from finc_eval.naming.looks import find_looks

N = 120  # photographs of a set
STEPS = {"sideways": (0, 1), "up and down": (1, 0), "diagonal": (1, 1)}


@pytest.fixture(scope="module")
def photographs(assets):
    """Three sets of photographs of 64 pixels."""
    with zipfile.ZipFile(assets / "photos" / "tiny_imagenet_24x300.zip") as archive:
        names = np.random.default_rng(5).permutation(sorted(one for one in archive.namelist() if one.endswith("JPEG")))
        images = [Image.open(io.BytesIO(archive.read(one))).convert("RGB") for one in names[: 3 * N]]
    return [images[start : start + N] for start in range(0, 3 * N, N)]


def moved(image, step, length):
    """A picture while the camera moves so many pixels; its edges are repeated beyond it."""
    pixels = np.pad(np.asarray(image, float), ((length, length), (length, length), (0, 0)), mode="edge")
    width, height = image.size
    down, across = ([length + (place - length // 2) * each for place in range(length)] for each in step)
    parts = [pixels[top : top + height, left : left + width] for top, left in zip(down, across, strict=True)]
    return Image.fromarray(np.mean(parts, 0).round().astype(np.uint8))


def looks_of(gen, ref):
    sets = {
        name: fe.EmbeddingSet(np.random.default_rng(seed).normal(size=(len(images), 2)), images=images, name=name)
        for seed, (name, images) in enumerate((("gen", gen), ("ref", ref)))
    }
    return find_looks(sets, 0)


CASES = {  # how each picture is blurred, the part of the set, and the trait that names it
    **{f"{name} by {length}": (name, length, 1.0, "streaks" if name != "diagonal" else "sharpness")
       for name in STEPS for length in (5, 9)},
    "a third sideways": ("sideways", 9, 0.33, "streaks"),
    "half up and down": ("up and down", 9, 0.5, "streaks"),
    **{f"plain blur of {radius}": (None, radius, 1.0, "sharpness") for radius in (0.8, 1.2, 2.0)},
    "a third in plain blur": (None, 1.5, 0.33, "sharpness"),
}  # fmt: skip


@pytest.mark.one_of_each(by=lambda case: CASES[case][3])
@pytest.mark.parametrize("case", CASES)
def test_a_blur_has_the_same_name_against_two_sets(case, photographs):
    name, size, part, trait = CASES[case]
    images, *references = photographs
    done = [
        (image.filter(ImageFilter.GaussianBlur(size)) if name is None else moved(image, STEPS[name], size))
        if place < part * N
        else image
        for place, image in enumerate(images)
    ]
    found = [looks_of(done, reference) for reference in references]
    assert [looks[0].trait for looks in found] == [trait, trait]
    assert len({looks[0].name for looks in found}) == 1
    assert not any({look.trait for look in looks} >= {"streaks", "sharpness"} for looks in found)


def test_photographs_that_nobody_moved_are_not_streaked(photographs):
    images, *references = photographs
    assert [looks_of(images, reference) for reference in references] == [(), ()]


def scratched(image, rng):
    """A picture with four light lines up and down, anywhere."""
    image = image.copy()
    for left in rng.integers(0, image.width, 4).tolist():
        ImageDraw.Draw(image).line((left, 0, left, image.height), fill=(230, 230, 230))
    return image


@pytest.mark.parametrize("kind", ["scratches", "buses"])
def test_streaks_that_no_motion_made_are_not_said_to_be_of_motion(kind, assets, photographs):
    images, reference, _ = photographs
    if kind == "scratches":
        rng = np.random.default_rng(1)
        images = [scratched(image, rng) for image in images]
    else:
        with zipfile.ZipFile(assets / "photos" / "tiny_imagenet_24x300.zip") as archive:
            names = [one for one in sorted(archive.namelist()) if "school_bus" in one and one.endswith("JPEG")][:N]
            images = [Image.open(io.BytesIO(archive.read(one))).convert("RGB") for one in names]
    streaks = [look for look in looks_of(images, reference) if look.trait == "streaks"]
    assert streaks
    assert not any("motion" in look.name for look in streaks)
