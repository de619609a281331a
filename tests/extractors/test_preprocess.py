"""Resizing gives the pixels of the libraries whose names the methods bear; normalizing gives what networks expect."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from timm.data import create_transform
from torch_fidelity.interpolate_compat_tensorflow import interpolate_bilinear_2d_like_tensorflow1x
from torchvision import transforms
from torchvision.models.video import MViT_V2_S_Weights, S3D_Weights
from torchvision.transforms.functional import normalize, to_tensor

from finc_eval.extractors.card import Preprocessing
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.preprocess import normalize_values, resize_frames

# Upwards, downwards, both at once, square and not, odd and even, and one already at the target.
SIZES = [(28, 28), (32, 32), (512, 512), (1000, 600), (375, 500), (301, 223), (100, 640), (224, 224)]

PIL = Preprocessing(
    size=(224, 224),
    geometry="squash",
    method="pil",
    interpolation="bicubic",
    antialias=True,
    rounding="uint8",
    range=(0.0, 1.0),
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
)
FILTERS = {
    "bicubic": transforms.InterpolationMode.BICUBIC,
    "bilinear": transforms.InterpolationMode.BILINEAR,
    "lanczos": transforms.InterpolationMode.LANCZOS,
}


def picture(size, seed=0):
    """Hard black-and-white edges, where filters overshoot, and noise."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (*size, 3), np.uint8)
    pixels[: size[0] // 3] = 255 * (rng.random((size[0] // 3, size[1], 1)) < 0.5)
    return pixels


def by_torchvision(pixels, *steps):
    return np.asarray(transforms.Compose(steps)(Image.fromarray(pixels)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("interpolation", FILTERS)
class TestPil:
    def test_squash_is_torchvisions_resize_to_both_sides(self, size, interpolation):
        pixels, how = picture(size), replace(PIL, size=(224, 160), interpolation=interpolation)
        expected = by_torchvision(pixels, transforms.Resize((224, 160), FILTERS[interpolation]))
        np.testing.assert_array_equal(resize_frames(pixels, how), expected)

    @pytest.mark.one_of_each("size", "interpolation", "fraction")
    @pytest.mark.parametrize(("fraction", "short"), [(1.0, 224), (0.875, 256), (0.9, 248), (0.95, 235)])
    def test_crop_is_torchvisions_resize_of_the_short_side_and_center_crop(self, size, interpolation, fraction, short):
        pixels = picture(size)
        how = replace(PIL, geometry="crop", interpolation=interpolation, crop_fraction=fraction)
        steps = transforms.Resize(short, FILTERS[interpolation]), transforms.CenterCrop(224)
        np.testing.assert_array_equal(resize_frames(pixels, how), by_torchvision(pixels, *steps))


@pytest.mark.one_of_each("size", "fraction", "geometry", "target")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("fraction", [1.0, 0.9, 0.875])
@pytest.mark.parametrize(("geometry", "mode"), [("crop", "center"), ("squash", "squash")])
@pytest.mark.parametrize("target", [(224, 224), (96, 128)])
def test_crops_are_those_of_timm(size, fraction, geometry, mode, target):
    pixels = picture(size)
    how = replace(PIL, size=target, geometry=geometry, crop_fraction=fraction)
    transform = create_transform(
        (3, *target), interpolation="bicubic", crop_pct=fraction, crop_mode=mode, use_prefetcher=True
    )
    expected = np.asarray(transform(Image.fromarray(pixels))).transpose(1, 2, 0)
    np.testing.assert_array_equal(resize_frames(pixels, how), expected)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("interpolation", FILTERS)
def test_clean_is_clean_fid_bit_for_bit(size, interpolation):
    resize = pytest.importorskip("cleanfid.resize")
    how = replace(PIL, size=(299, 299), method="clean", interpolation=interpolation, rounding="none")
    pixels = picture(size)
    out = resize_frames(pixels, how)
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, resize.make_resizer("PIL", False, interpolation, (299, 299))(pixels))


@pytest.mark.parametrize("size", [*SIZES, (299, 299), (1, 1), (2, 700)])
def test_tensorflow1_is_torch_fidelitys_bilinear_bit_for_bit(size):
    how = replace(PIL, size=(299, 299), method="tensorflow1", interpolation="bilinear", rounding="none")
    pixels = picture(size)
    planes = torch.from_numpy(pixels).permute(2, 0, 1)[None].float()
    expected = interpolate_bilinear_2d_like_tensorflow1x(planes, size=(299, 299), align_corners=False)
    out = resize_frames(pixels, how)
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, expected[0].permute(1, 2, 0).numpy())


TORCH = replace(PIL, size=(299, 299), method="torch", interpolation="bilinear", antialias=False, rounding="none")


@pytest.mark.parametrize("size", SIZES)
class TestTorch:
    def test_it_is_clean_fids_legacy_pytorch_bit_for_bit(self, size):
        resize = pytest.importorskip("cleanfid.resize")
        pixels = picture(size)
        np.testing.assert_array_equal(resize_frames(pixels, TORCH), resize.build_resizer("legacy_pytorch")(pixels))

    def test_it_is_pytorch_fids_interpolation_of_0_to_1_up_to_float_rounding(self, size):
        pixels = picture(size)
        unit = to_tensor(Image.fromarray(pixels))[None]
        expected = torch.nn.functional.interpolate(unit, (299, 299), mode="bilinear", align_corners=False)
        out = resize_frames(pixels, TORCH) / 255
        np.testing.assert_allclose(out, expected[0].permute(1, 2, 0).numpy(), rtol=0, atol=1e-6)

    def test_antialiasing_is_torchvisions_of_tensors(self, size):
        pixels = picture(size)
        how = replace(TORCH, interpolation="bicubic", antialias=True)
        planes = torch.from_numpy(pixels).permute(2, 0, 1).float()
        resize = transforms.Resize((299, 299), transforms.InterpolationMode.BICUBIC, antialias=True)
        expected = resize(planes).clamp(0, 255).permute(1, 2, 0)
        np.testing.assert_allclose(resize_frames(pixels, how), expected, rtol=0, atol=2e-4)

    @pytest.mark.parametrize(("weights", "geometry"), [(MViT_V2_S_Weights, "crop"), (S3D_Weights, "squash")])
    def test_rounded_it_is_the_preset_of_torchvisions_video_networks(self, size, weights, geometry):
        preset = weights.DEFAULT.transforms()
        clip = np.stack([picture(size, seed) for seed in range(2)])
        how = replace(
            TORCH,
            size=(224, 224),
            geometry=geometry,
            crop_fraction=0.875,
            rounding="uint8",
            mean=tuple(preset.mean),
            std=tuple(preset.std),
        )
        ours = normalize_values(torch.from_numpy(resize_frames(clip, how))[None], how)
        expected = preset(torch.from_numpy(clip).permute(0, 3, 1, 2).contiguous())
        # A single step of the 8-bit pixels would be 0.017.
        torch.testing.assert_close(ours[0], expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("method", "rounding"),
    [("pil", "uint8"), ("clean", "none"), ("tensorflow1", "none"), ("torch", "none"), ("torch", "uint8")],
)
class TestEveryMethod:
    def test_pixels_of_the_right_size_keep_their_values(self, method, rounding):
        pixels = picture((224, 224))
        out = resize_frames(pixels, replace(PIL, method=method, interpolation="bilinear", rounding=rounding))
        assert out.dtype == (np.uint8 if rounding == "uint8" else np.float32)
        np.testing.assert_array_equal(out, pixels)

    def test_a_clip_is_its_frames(self, method, rounding):
        clip = np.stack([picture((60, 80), seed) for seed in range(3)])
        how = replace(PIL, size=(48, 40), method=method, interpolation="bilinear", rounding=rounding, geometry="crop")
        out = resize_frames(clip, how)
        assert out.shape == (3, 48, 40, 3)
        for frame, expected in zip(out, clip, strict=True):
            np.testing.assert_array_equal(frame, resize_frames(expected, how))

    def test_the_values_stay_within_0_and_255_where_filters_overshoot(self, method, rounding):
        interpolation = "bilinear" if method == "tensorflow1" else "bicubic"
        out = resize_frames(
            picture((96, 96)), replace(PIL, method=method, rounding=rounding, interpolation=interpolation)
        )
        assert out.min() >= 0
        assert out.max() <= 255


class TestNormalised:
    @pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
    def test_it_is_torchvisions_normalize(self, dtype):
        images = np.stack([picture((20, 31), seed) for seed in range(4)])
        expected = torch.stack([normalize(to_tensor(image), PIL.mean, PIL.std) for image in images])
        batch = torch.from_numpy(images).to(dtype)
        out = normalize_values(batch, PIL)
        assert out.dtype == torch.float32
        torch.testing.assert_close(out, expected, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(batch, images)

    def test_a_range_of_minus_1_to_127_128ths_is_the_x_minus_128_over_128_of_the_fid_network(self):
        how = replace(PIL, range=(-1.0, 127 / 128), mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
        every = torch.arange(256, dtype=torch.uint8).repeat_interleave(3).view(1, 16, 16, 3)
        assert torch.equal(normalize_values(every, how)[0, 0].flatten(), (torch.arange(256.0) - 128) / 128)

    def test_images_come_out_channels_last_in_memory(self):
        out = normalize_values(torch.zeros(2, 5, 7, 3, dtype=torch.uint8), PIL)
        assert out.shape == (2, 3, 5, 7)
        assert out.is_contiguous(memory_format=torch.channels_last)

    def test_clips_come_out_with_frames_after_channels_and_channels_last_in_memory(self):
        clips = torch.arange(2 * 4 * 5 * 7 * 3).view(2, 4, 5, 7, 3).to(torch.uint8)
        out = normalize_values(clips, replace(PIL, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0)))
        assert out.shape == (2, 3, 4, 5, 7)
        assert out.is_contiguous(memory_format=torch.channels_last_3d)
        torch.testing.assert_close(out * 255, clips.permute(0, 4, 1, 2, 3).float())


def test_the_module_does_not_import_torch():
    program = "import sys, finc_eval.extractors.preprocess; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_line_of_pixels_is_refused_before_it_becomes_a_wall():
    how = load_card("resnet50").preprocessing
    with pytest.raises(ValueError, match="60000x1 pixels become 13920000x232"):
        resize_frames(np.zeros((1, 60_000, 3), np.uint8), how)
