"""Photographs with numbers are no frames of a video, and are refused where clips are needed."""

import numpy as np
import pytest
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import DataError

RNG = np.random.default_rng(0)
SHADES = 255 * RNG.random((80, 4, 4, 3))
LARGE = SHADES.repeat(8, 1).repeat(8, 2).astype(np.uint8)  # (80, 32, 32, 3): pictures with nothing in common


def moving(number):
    """Return frames of one large picture through a window that moves."""
    whole = np.asarray(Image.fromarray(LARGE[number]).resize((128, 128), Image.Resampling.BICUBIC))
    return [whole[3 * step : 3 * step + 32, 2 * step : 2 * step + 32] for step in range(20)]


def still(number):
    return [np.clip(LARGE[number] + RNG.normal(0, 3, LARGE[number].shape), 0, 255).astype(np.uint8) for _ in range(20)]


def cut(number):
    return [*moving(number)[:10], *moving(number + 40)[:10]]


def photographs(number):
    return list(LARGE[20 * number : 20 * number + 20])


def saved(root, folders, name):
    for folder, pictures in folders.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        for number, picture in enumerate(pictures):
            Image.fromarray(picture).save(root / folder / name.format(number))
    return root


PHOTOGRAPHS = {
    "in the folder itself": ({"": photographs(0)}, "IMG_{:04d}.png"),
    "from 0": ({"": photographs(1)}, "{}.png"),
    "in folders of classes": ({f"class {one}": photographs(one) for one in range(4)}, "photo{:03d}.png"),
    "few": ({"": photographs(0)[:8]}, "DSC{:05d}.png"),
}
CLIPS = {
    "a moving window": {f"clip {one}": moving(one) for one in range(4)},
    "pictures that stand still": {f"clip {one}": still(one) for one in range(4)},
    "videos with a cut": {f"clip {one}": cut(one) for one in range(4)},
    "a single video": {"": moving(5)},
    "photographs beside videos": {"clip 0": photographs(0), "clip 1": moving(1)},
}


@pytest.mark.parametrize("how", PHOTOGRAPHS)
def test_photographs_are_refused(how, tmp_path):
    with pytest.raises(DataError, match=r"as photographs do.*choose an extractor for images"):
        fe.extract(saved(tmp_path / "set", *PHOTOGRAPHS[how]), "motion", tmp_path / "out.h5")
    assert not (tmp_path / "out.h5").exists()


OF_FOLDERS = ("a moving window", "videos with a cut")  # like pictures that stand still, and dearer


@pytest.mark.parametrize("what", [pytest.param(one, marks=[pytest.mark.long] * (one in OF_FOLDERS)) for one in CLIPS])
def test_frames_of_videos_are_clips(what, tmp_path):
    with fe.extract(saved(tmp_path / "set", CLIPS[what], "{:03d}.png"), "motion", tmp_path / "out.h5") as cache:
        assert cache.n == len(CLIPS[what])
