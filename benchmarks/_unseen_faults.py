"""Forty faults of pictures that people see, by which nothing of the test of local evidence was chosen.

A *change* takes a photograph of 64 pixels and a random generator, and returns an image of the same size. Shares follow
from the order of the list: 10, 15, 20, 25 and 30 % by turns.
"""

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

SIDE = 64
SHARES = (0.1, 0.15, 0.2, 0.25, 0.3)
Y, X = np.mgrid[:SIDE, :SIDE].astype(float)


def of_pixels(change):
    """Return a change of images from a change of pixels, (64, 64, 3) in 0 to 255."""

    def changed(image, rng):
        return Image.fromarray(np.clip(change(np.asarray(image, float), rng), 0, 255).astype("u1"))

    return changed


def over(image, draw):
    """Draw upon an image at four times its size, so that lines are smooth; `draw` takes a pen."""
    large = image.resize((4 * SIDE, 4 * SIDE), Image.Resampling.NEAREST)
    layer = Image.new("RGBA", large.size)
    draw(ImageDraw.Draw(layer))
    small = layer.resize(image.size, Image.Resampling.BOX)
    return Image.composite(small.convert("RGB"), image, small.getchannel("A"))


def moved(pixels, rows, columns):
    """Return pixels that are taken from other rows and columns, the nearest that there are."""
    return pixels[np.clip(np.rint(rows), 0, SIDE - 1).astype(int), np.clip(np.rint(columns), 0, SIDE - 1).astype(int)]


# --- marks of the material


def scratches(image, rng):
    lines = [(x, 0, x + rng.integers(-40, 40), 256) for x in rng.integers(20, 236, 4)]
    return over(image, lambda pen: [pen.line([*map(int, line)], fill=(240, 240, 235, 255), width=4) for line in lines])


def dust(image, rng):
    spots = [(x, y, x + 14, y + 14) for x, y in rng.integers(0, 240, (7, 2)).tolist()]
    return over(image, lambda pen: [pen.ellipse(spot, fill=(25, 22, 20, 230)) for spot in spots])


def fingerprint(x, rng):
    cy, cx = rng.integers(20, 44, 2)
    away = np.hypot((Y - cy) / 1.3, X - cx + 3 * np.sin(Y / 5))
    return x + (45 * np.sin(2 * np.pi * away / 3.5) * (away < 15))[..., None]


def light_leak(x, rng):
    return x + np.exp(-X / 10)[..., None] * (230, 110, 20)


def torn_corner(image, rng):
    side = int(rng.integers(90, 130))
    return over(image, lambda pen: pen.polygon([(256, 256), (256 - side, 256), (256, 256 - side)], fill="white"))


def crease(x, rng):
    from_line = Y + X - rng.integers(40, 90)
    return x + (90 * np.exp(-((from_line / 1.5) ** 2)) - 70 * np.exp(-(((from_line - 4) / 1.5) ** 2)))[..., None]


def cracked_glass(image, rng):
    cx, cy = rng.integers(80, 176, 2).tolist()
    ends = [(cx + 300 * np.cos(a), cy + 300 * np.sin(a)) for a in rng.uniform(0, 2 * np.pi, 9)]
    return over(image, lambda pen: [pen.line([(cx, cy), end], fill=(235, 240, 245, 220), width=3) for end in ends])


def rain(image, rng):
    drops = [(x, y, x - 8, y + 30) for x, y in rng.integers(0, 256, (40, 2)).tolist()]
    return over(image, lambda pen: [pen.line(drop, fill=(220, 225, 235, 200), width=3) for drop in drops])


# --- things upon the picture


def lens_flare(image, rng):
    x, y = rng.integers(20, 90, 2).tolist()

    def draw(pen):
        for step, radius in ((0, 26), (0.6, 12), (1, 18), (1.3, 9), (1.6, 22)):
            cx, cy = x + step * (128 - x) * 1.2, y + step * (128 - y) * 1.2
            pen.ellipse(
                (cx - radius, cy - radius, cx + radius, cy + radius), fill=(255, 240, 190, 255 if not step else 110)
            )

    return over(image, draw)


def grid_overlay(image, _rng):
    lines = [8 * 4 * k for k in range(1, 8)]
    return over(
        image,
        lambda pen: [
            pen.line(line, fill=(255, 255, 255, 130), width=4)
            for k in lines
            for line in ((k, 0, k, 256), (0, k, 256, k))
        ],
    )


def cut_out(image, rng):
    x, y = rng.integers(40, 110, 2).tolist()
    return over(image, lambda pen: pen.ellipse((x, y, x + 100, y + 100), fill=(127, 127, 127, 255)))


def ticker(image, rng):
    text = "".join(rng.choice([*"abcdefghiklmnoprstuvwz "], 14))
    image = image.copy()
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 52, 64, 64), fill=(15, 20, 60))
    pen.text((1, 52), text, fill="white")
    return image


def matrix_code(image, rng):
    image, code = image.copy(), Image.fromarray((255 * rng.integers(0, 2, (11, 11))).astype("u1"))
    image.paste(ImageOps.expand(code.resize((22, 22), Image.Resampling.NEAREST), 1, 255).convert("RGB"), (38, 38))
    return image


def sticker(image, rng):
    x, y = rng.integers(0, 180, 2).tolist()

    def draw(pen):
        pen.ellipse((x, y, x + 72, y + 72), fill=(255, 215, 0, 255))
        for eye in (20, 44):
            pen.ellipse((x + eye, y + 20, x + eye + 9, y + 32), fill=(0, 0, 0, 255))
        pen.arc((x + 16, y + 20, x + 56, y + 58), 20, 160, fill=(0, 0, 0, 255), width=5)

    return over(image, draw)


def timestamp(image, rng):
    image = image.copy()
    digits = rng.integers(0, 10, 6)
    ImageDraw.Draw(image).text((20, 52), "{}{}:{}{}.{}{}".format(*digits), fill=(255, 140, 20))
    return image


def barcode(x, rng):
    x[46:60, 34:62] = 255
    x[48:58, 36:60] = (255 * rng.integers(0, 2, 24))[None, :, None]
    return x


def cartoon_eyes(image, rng):
    x, y = rng.integers(40, 120, 2).tolist()

    def draw(pen):
        for shift in (0, 52):
            pen.ellipse(
                (x + shift, y, x + shift + 48, y + 56), fill=(255, 255, 255, 255), outline=(0, 0, 0, 255), width=4
            )
            pen.ellipse((x + shift + 16, y + 20, x + shift + 36, y + 42), fill=(0, 0, 0, 255))

    return over(image, draw)


# --- what is missing, or twice


def missing_quadrant(x, rng):
    top, left = rng.integers(0, 2, 2) * SIDE // 2
    x[top : top + SIDE // 2, left : left + SIDE // 2] = 245
    return x


def repeated_band(x, rng):
    top = int(rng.integers(14, 36))
    x[top + 12 : top + 24] = x[top : top + 12]
    return x


def lost_blocks(x, rng):
    for top, left in 8 * rng.integers(0, 8, (7, 2)):
        x[top : top + 8, left : left + 8] = x[top : top + 8, left : left + 8].mean((0, 1))
    return x


def smeared_half(x, rng):
    x[:, SIDE // 2 :] = x[:, SIDE // 2 : SIDE // 2 + 1]
    return x


def double_exposure(image, rng):
    return Image.blend(image, image.rotate(90), 0.5)


def ghost(image, rng):
    return Image.blend(image, ImageChops.offset(image, 7, 3), 0.4)


def kaleidoscope(x, rng):
    quarter = x[: SIDE // 2, : SIDE // 2]
    half = np.concatenate([quarter, quarter[:, ::-1]], 1)
    return np.concatenate([half, half[::-1]], 0)


def seam(x, rng):
    x[:, SIDE // 2 :] = np.roll(x, 6, 0)[:, SIDE // 2 :]
    return x


# --- what networks and signals do


def moire(x, rng):
    angle = rng.uniform(0.3, 1.2)
    return x * (1 + 0.3 * np.sin(2 * np.pi * (X * np.cos(angle) + Y * np.sin(angle)) / 2.7))[..., None]


def dead_pixels(x, rng):
    rows, columns = np.random.default_rng(0).integers(2, SIDE - 2, (2, 14))  # at the same places in all
    x[rows, columns] = (255, 0, 255)
    return x


def checkerboard(x, rng):
    return x + 14 * (-1) ** (X + Y)[..., None]


def ringing(x, rng):
    rows, columns = np.abs(np.fft.fftfreq(SIDE))[:, None], np.abs(np.fft.fftfreq(SIDE))
    return np.fft.ifft2(np.fft.fft2(x, axes=(0, 1)) * ((rows < 0.17) & (columns < 0.17))[..., None], axes=(0, 1)).real


def interlaced(x, rng):
    x[1::2] = np.roll(x[1::2], 5, 1)
    return x


def scan_lines(x, rng):
    x[::3] *= 0.55
    return x


def rolling_shutter(x, rng):
    return moved(x, Y, X + 6 * np.sin(2 * np.pi * Y / 32 + rng.uniform(0, 6)))


def color_bleeding(image, rng):
    light, blue, red = image.convert("YCbCr").split()
    bled = [ImageChops.offset(part.filter(ImageFilter.GaussianBlur(4)), 5, 0) for part in (blue, red)]
    return Image.merge("YCbCr", (light, *bled)).convert("RGB")


def oil_paint(image, rng):
    return image.filter(ImageFilter.ModeFilter(5))


# --- color and light


def clipped_highlights(x, rng):
    return np.where(x.mean(2, keepdims=True) > 150, 255, x)


def wrong_corner(x, rng):
    part = np.clip((X + Y - 60) / 30, 0, 1)[..., None]
    return x * (1 - part) + x * part * (0.55, 0.8, 1.5)


def wrong_hues(image, rng):
    hue, saturation, value = image.convert("HSV").split()
    return Image.merge("HSV", (hue.point(lambda number: (number + 60) % 256), saturation, value)).convert("RGB")


def swapped_channels(x, rng):
    return x[..., ::-1]


# --- geometry


def glass_tiles(x, rng):
    return moved(x, Y + 5 * np.sin(2 * np.pi * Y / 12), X + 5 * np.sin(2 * np.pi * X / 12))


def swirl(x, rng):
    away = np.hypot(Y - 31.5, X - 31.5)
    turn = np.arctan2(Y - 31.5, X - 31.5) + 2.2 * np.exp(-((away / 18) ** 2))
    return moved(x, 31.5 + away * np.sin(turn), 31.5 + away * np.cos(turn))


def fisheye(x, rng):
    away = np.hypot(Y - 31.5, X - 31.5) / 31.5
    return moved(x, 31.5 + (Y - 31.5) * (0.45 + 0.55 * away), 31.5 + (X - 31.5) * (0.45 + 0.55 * away))


CHANGES = {
    "scratches": scratches,
    "lens flare": lens_flare,
    "grid of lines": grid_overlay,
    "moiré": of_pixels(moire),
    "dead pixels": of_pixels(dead_pixels),
    "an object cut out": cut_out,
    "a band of rows twice": of_pixels(repeated_band),
    "clipped highlights": of_pixels(clipped_highlights),
    "wrong white balance in a corner": of_pixels(wrong_corner),
    "seam": of_pixels(seam),
    "checkerboard": of_pixels(checkerboard),
    "ringing": of_pixels(ringing),
    "wrong hues": wrong_hues,
    "text in a bar at the bottom": ticker,
    "matrix code": matrix_code,
    "sticker": sticker,
    "missing quadrant": of_pixels(missing_quadrant),
    "glass tiles": of_pixels(glass_tiles),
    "swirl": of_pixels(swirl),
    "fisheye": of_pixels(fisheye),
    "smeared half": of_pixels(smeared_half),
    "timestamp": timestamp,
    "dust": dust,
    "fingerprint": of_pixels(fingerprint),
    "barcode": of_pixels(barcode),
    "cartoon eyes": cartoon_eyes,
    "double exposure": double_exposure,
    "ghost": ghost,
    "rolling shutter": of_pixels(rolling_shutter),
    "interlaced": of_pixels(interlaced),
    "swapped channels": of_pixels(swapped_channels),
    "scan lines": of_pixels(scan_lines),
    "color bleeding": color_bleeding,
    "rain": rain,
    "light leak": of_pixels(light_leak),
    "torn corner": torn_corner,
    "crease": of_pixels(crease),
    "cracked glass": cracked_glass,
    "kaleidoscope": of_pixels(kaleidoscope),
    "lost blocks": of_pixels(lost_blocks),
}
UNSEEN = {name: (change, SHARES[place % len(SHARES)]) for place, (name, change) in enumerate(CHANGES.items())}
