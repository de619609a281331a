"""Warnings where two sets are encoded differently, and only there."""

import json
import zipfile

import numpy as np
import pytest
from PIL import Image

from finc_eval.core.errors import DataError
from finc_eval.core.record import plain, structure
from finc_eval.samples.encoding import Encoding, mark
from finc_eval.samples.opening import open_source
from finc_eval.samples.profile import Profile, unlike_encodings

PHOTOS = [
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (12, 12, 3), dtype=np.uint8)).resize(
        (96, 96), Image.Resampling.BICUBIC
    )
    for seed in range(8)
]


def profile(folder, suffix, images=PHOTOS, **options):
    """Save images and profile them as a set."""
    folder.mkdir(parents=True)
    for number, image in enumerate(images):
        image.save(folder / f"{number}{suffix}", **options)
    return Profile.of(sample.encoding for sample in open_source(folder).samples())


def of(n=10, **encoding):
    return Profile.of(
        [Encoding(**{"format": "PNG", "mode": "RGB", "width": 64, "height": 64, "is_gray": False} | encoding)] * n
    )


def test_sets_that_are_encoded_alike_need_no_warning(tmp_path):
    for suffix in (".png", ".jpg"):
        assert (
            unlike_encodings(
                profile(tmp_path / suffix / "a", suffix), profile(tmp_path / suffix / "b", suffix, PHOTOS[3:])
            )
            == []
        )


def test_jpeg_against_png_of_the_same_photographs_is_warned_of(tmp_path):
    (warning,) = unlike_encodings(profile(tmp_path / "a", ".png"), profile(tmp_path / "b", ".jpg", quality=75))
    assert warning.startswith("0 % of gen (PNG) and 100 % of ref (JPEG) are compressed with loss")


def test_two_ways_to_compress_are_warned_of(tmp_path):
    jpeg, webp = profile(tmp_path / "a", ".jpg"), profile(tmp_path / "b", ".webp")
    assert unlike_encodings(jpeg, webp)[0].startswith("gen is mostly JPEG and ref mostly WEBP")
    assert unlike_encodings(profile(tmp_path / "c", ".png"), profile(tmp_path / "d", ".webp", lossless=True)) == []


def test_jpeg_qualities_are_warned_of_where_they_are_more_than_five_apart(tmp_path):
    at = {quality: profile(tmp_path / str(quality), ".jpg", quality=quality) for quality in (75, 80, 95)}
    assert unlike_encodings(at[75], at[80]) == []
    assert unlike_encodings(at[95], at[75])[0].startswith(
        "the JPEGs of gen have the median quality 95, those of ref 75:"
    )


def test_sizes_are_warned_of_beyond_one_and_a_half():
    assert unlike_encodings(of(), of(width=96, height=96)) == []
    assert unlike_encodings(of(), of(width=97, height=97))[0].startswith(
        "samples are 64 pixels wide and 64 high in gen, 97 and 97 in ref"
    )


def test_shapes_are_warned_of_also_where_their_medians_agree():
    mixed = of(20) + of(20, width=90) + of(20, height=90)
    (warning,) = unlike_encodings(of(60), mixed)
    assert warning.startswith("width to height is 1 in gen and 0.711 to 1.41 in ref")
    assert unlike_encodings(mixed, mixed) == []


def test_gray_sets_are_warned_of(tmp_path):
    gray = [photo.convert("L") for photo in PHOTOS]
    (warning,) = unlike_encodings(profile(tmp_path / "a", ".png", gray + PHOTOS), profile(tmp_path / "b", ".png"))
    assert warning.startswith("50 % of gen and 0 % of ref are gray")


def test_alpha_in_one_set_only_is_warned_of(tmp_path):
    clear = [photo.convert("RGBA") for photo in PHOTOS]
    (warning,) = unlike_encodings(profile(tmp_path / "a", ".png"), profile(tmp_path / "b", ".png", clear))
    assert warning.startswith("0 % of gen and 100 % of ref have an alpha channel")


def test_frame_rates_are_warned_of_but_not_thirty_against_thirty_of_television():
    clips = {"format": "h264", "mode": "yuv420p"}
    assert unlike_encodings(of(**clips, fps=30.0), of(**clips, fps=29.97)) == []
    (warning,) = unlike_encodings(of(**clips, fps=25.0), of(**clips, fps=10.0))
    assert warning.startswith("gen has 25 frames a second and ref 10 (from the 10th")


VIDEO = {"format": "h264", "mode": "yuv420p", "fps": 24.0, "frames": 48, "seconds": 2.0}


@pytest.mark.parametrize(
    ("unlike", "words"),
    [
        ({"fps": 8.0}, "gen has 8 to 24 frames a second and ref 24 "),
        ({"fps": 60.0}, "gen has 24 to 60 frames a second and ref 24 "),
        ({"frames": 1, "seconds": 1 / 24}, "videos last 0.0417 to 2 seconds in gen and 2 in ref "),
        ({"fps": None, "seconds": None}, "60 % of gen and 100 % of ref state their frame rate"),
        ({"color": "9/16"}, "the colors of gen are marked unmarked and those of ref unmarked "),
        ({"color": "1/1"}, "the colors of gen are marked unmarked and those of ref unmarked "),
        ({"aspect": 2.0}, "pixels are 1 to 2 times as wide as high in gen and 1 in ref"),
        ({"mode": "yuva420p"}, "40 % of gen and 0 % of ref have an alpha channel"),
        ({"width": 128, "height": 128}, "samples are 64 to 128 pixels wide and 64 to 128 high in gen"),
    ],
)
def test_two_fifths_of_the_videos_that_are_unlike_the_others_are_warned_of(unlike, words):
    ref = of(30, **VIDEO)
    (warning,) = unlike_encodings(of(18, **VIDEO) + of(12, **VIDEO | unlike), ref)
    assert warning.startswith(words)
    assert unlike_encodings(ref, ref) == []


def test_folders_of_frames_are_compared_by_their_number():
    frames = {"format": "PNG"}
    (warning,) = unlike_encodings(of(20, **frames, frames=7), of(20, **frames, frames=160))
    assert warning.startswith("videos last 7 frames in gen and 160 frames in ref")


def test_halves_of_one_set_are_hardly_ever_warned_of():
    rng = np.random.default_rng(0)

    def draw(n):
        rates, lengths = rng.choice([24.0, 25.0, 30.0], n), rng.lognormal(1, 0.7, n)
        return Profile.of(
            [
                Encoding(
                    "h264", "yuv420p", 320, 240, False, fps=float(rate), frames=int(rate * length) + 1, seconds=length
                )
                for rate, length in zip(rates, lengths, strict=True)
            ]
        )

    warned = sum(bool(unlike_encodings(draw(n), draw(n))) for n in (10, 20, 60) for _ in range(50))
    assert warned <= 12  # 5 % of 150 are 7.5; the two families, rates and lengths, are tested by themselves


def test_an_empty_set_is_not_warned_of():
    assert unlike_encodings(Profile(), of(format="JPEG")) == []


def test_the_sum_of_profiles_is_that_of_the_union(tmp_path):
    encodings = [
        Encoding("JPEG", "RGB", 100 + number % 7, 80, number % 3 == 0, 70 + number % 4) for number in range(50)
    ] + [Encoding("vp9", "yuv420p", 320, 240, False, None, 29.97)]
    assert Profile.of(encodings[:20]) + Profile.of(encodings[20:]) == Profile.of(encodings)
    assert Profile() + Profile.of(encodings) == Profile.of(encodings)
    sizes = [Encoding("PNG", "RGB", side, side, False) for side in range(1, 41)]
    assert (Profile.of(sizes) + Profile.of(sizes)).other_sizes == Profile.of(sizes * 2).other_sizes == 16


def test_a_profile_survives_json_and_says_what_a_reader_wants_to_know():
    encodings = [Encoding("JPEG", "RGB", side, side + 1, False, 60 + side % 30) for side in range(1, 101)]
    made = Profile.of(encodings)
    assert structure(Profile, json.loads(json.dumps(plain(made))), "the profile") == made
    assert (len(made.sizes), made.other_sizes) == (32, 68)
    assert made.median_quality == int(np.median([one.quality for one in encodings]))
    assert Profile().median_quality is None


def test_a_damaged_profile_is_refused():
    with pytest.raises(DataError, match="\"n\" must be a whole number, got 'many'"):
        structure(Profile, {"n": "many"}, "the profile")


@pytest.mark.long
def test_real_photographs_saved_twice_are_told_apart(assets, tmp_path):
    with zipfile.ZipFile(assets / "photos" / "imagenet_500.zip") as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")][:16]
        photos = [Image.open(archive.open(name)).convert("RGB") for name in names]
    whole = profile(tmp_path / "png", ".png", photos)
    lossy = profile(tmp_path / "jpg", ".jpg", photos, quality=75)
    assert lossy.median_quality == 75
    assert whole.sizes == lossy.sizes
    assert len(unlike_encodings(whole, lossy)) == 1
    half = profile(tmp_path / "half", ".png", [photo.resize((photo.width // 2, photo.height // 2)) for photo in photos])
    (warning,) = unlike_encodings(half, whole)
    assert warning.startswith("samples are ")


def test_an_image_is_shallow_only_if_none_of_its_pixels_is_deep():
    """A few pixels are looked at first: those between them count, too."""
    pixels = np.ones((16, 16, 3), np.uint8)
    assert mark("RGB", pixels) == "RGB/1bit"
    pixels[3, 5] = 200
    assert mark("RGB", pixels) == "RGB"
