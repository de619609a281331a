"""Faults that are drawn into square pictures of any size: a picture of 64 pixels is the unit of all lengths."""

import io

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont, ImageOps

UNIT = 64


def lengths(image, *values):
    """Return lengths in a picture of 64 pixels as lengths in this picture."""
    return tuple(max(1, round(value * image.width / UNIT)) if value else 0 for value in values)


def some_letters(image, rng):
    text = "".join(chr(65 + letter) for letter in rng.integers(0, 26, 9))
    place, (size,) = lengths(image, int(rng.integers(0, 12)), int(rng.integers(8, 48))), lengths(image, 10)
    ImageDraw.Draw(image).text(place, text, fill="white", font=ImageFont.load_default(size))
    return image


def patch(image, rng):
    left, top, side = lengths(image, *rng.integers(0, 44, 2).tolist(), 18)
    image.paste((200, 40, 160), (left, top, left + side, top + side))
    return image


def stamp(image, _rng):
    *box, width = lengths(image, 44, 44, 60, 60, 3)
    ImageDraw.Draw(image).ellipse(box, outline="white", width=width)
    return image


def border(image, _rng):
    side = image.width - 1
    ImageDraw.Draw(image).rectangle((0, 0, side, side), outline="black", width=lengths(image, 5)[0])
    return image


def soft_background(image, _rng):
    mask, (near, far, radius, edge) = Image.new("L", image.size, 255), lengths(image, 12, 52, 2, 3)
    ImageDraw.Draw(mask).ellipse((near, near, far, far), fill=0)
    soft = image.filter(ImageFilter.GaussianBlur(radius))
    return Image.composite(soft, image, mask.filter(ImageFilter.GaussianBlur(edge)))


def halo(image, _rng):
    return image.filter(ImageFilter.UnsharpMask(radius=lengths(image, 3)[0], percent=250, threshold=0))


def mirrored(image, _rng):
    half = image.width // 2
    image.paste(ImageOps.mirror(image.crop((0, 0, half, image.height))), (half, 0))
    return image


def tiles(image, _rng):
    half = image.width // 2
    small = image.resize((half, half))
    for place in ((0, 0), (half, 0), (0, half), (half, half)):
        image.paste(small, place)
    return image


def zoom(image, _rng):
    near, far = lengths(image, 14, 50)
    return image.crop((near, near, far, far)).resize(image.size, Image.Resampling.BICUBIC)


def tilt(image, _rng):
    return image.rotate(12, Image.Resampling.BICUBIC)


def fringes(image, _rng):
    red, green, blue = image.split()
    (by,) = lengths(image, 2)
    return Image.merge("RGB", (ImageChops.offset(red, by, 0), green, ImageChops.offset(blue, -by, 0)))


def compressed(image, _rng):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=12)
    return Image.open(file).convert("RGB")


FAULTS = {
    "writing across": (some_letters, 0.15),
    "patch of one color": (patch, 0.15),
    "stamp at a corner": (stamp, 0.25),
    "border": (border, 0.2),
    "soft background": (soft_background, 0.3),
    "halos": (halo, 0.25),
    "mirrored halves": (mirrored, 0.2),
    "tiles": (tiles, 0.15),
    "zoom": (zoom, 0.3),
    "tilted": (tilt, 0.3),
    "color fringes": (fringes, 0.2),
    "strong compression": (compressed, 0.25),
}
"""Function of a picture and a random generator that draws the fault, and the share of pictures that get it, by name."""
