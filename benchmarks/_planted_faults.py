"""Faults of pictures and sets that people see, to plant in generated sets: for the benchmark of what is said first.

A *change* takes an image and a random generator and returns an image of the same size. A *plant* takes a `Drawn` set
and a random generator, and changes the set in place.
"""

import io
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps

BICUBIC = Image.Resampling.BICUBIC


@dataclass
class Drawn:
    """A generated set before it is saved: images, the class of each, and the images of the reference."""

    images: list
    classes: list
    reference: list


@dataclass(frozen=True)
class Part:
    """Words and share that a headline must say about a fault.

    `words` is a regular expression of what people say; `share` and `before` are percentages of the generated set and of
    the reference; without `share`, all samples have the fault.
    """

    words: str
    share: float | None = None
    before: float = 0.0


@dataclass(frozen=True)
class Fault:
    """A planted fault, and what may be said of it.

    Attributes:
        name: name of the fault.
        kind: sort of fault, within which halves alternate.
        plant: function that plants it.
        parts: what must be said.
        follows: regular expression of true consequences, which are wrong in place of the cause.
        named: regular expression of classes that may be named.
        false: regular expression of what is untrue in any sentence.
        counts: number of samples of classes that differ from the reference.
        source: pictures that it is planted in.
        half: "shown" or "held".
    """

    name: str
    kind: str
    plant: object
    parts: tuple = ()
    follows: str = "$^"
    named: str = "$^"
    false: str = "$^"
    counts: tuple = ()
    source: str = "photos 64"
    half: str = ""


def of_some(change, share):
    """Return a plant that changes a share of the images, or all of a class."""

    def plant(drawn, rng):
        if isinstance(share, str):
            places = [place for place, name in enumerate(drawn.classes) if name == share]
        else:
            places = rng.permutation(len(drawn.images))[: round(share * len(drawn.images))].tolist()
        for place in places:
            drawn.images[place] = change(drawn.images[place], rng)

    return plant


def both(first, second):
    def plant(drawn, rng):
        first(drawn, rng)
        second(drawn, rng)

    return plant


def nothing(drawn, rng):
    """Leave the set as it is."""


def of_pixels(change):
    """Return a change of images from a change of pixels, (h, w, 3) in 0 to 255."""

    def changed(image, rng):
        return Image.fromarray(np.clip(change(np.asarray(image, float), rng), 0, 255).astype("u1"))

    return changed


def as_jpeg(image, quality):
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=quality)
    return Image.open(stream).convert("RGB")


def radius_of(x):
    """Return the squared distance of pixels from the middle: 0 there, 1 in the corners."""
    rows, columns = np.mgrid[-1 : 1 : x.shape[0] * 1j, -1 : 1 : x.shape[1] * 1j]
    return ((rows**2 + columns**2) / 2)[..., None]


def patch(image, rng):
    side, drawn = image.width // 5, image.copy()
    ImageDraw.Draw(drawn).rectangle((image.width // 2, side, image.width // 2 + side, 2 * side), fill=(20, 20, 20))
    return drawn


def writing(image, rng):
    drawn = image.copy()
    letters = "".join(rng.choice([*"ABCDEFGHKLMNPRSTUVXYZ"], 9))
    ImageDraw.Draw(drawn).text((4, image.height - 14), letters, fill=(255, 235, 60))
    return drawn


def stamp(image, rng):
    drawn, side = image.copy(), image.width
    pen = ImageDraw.Draw(drawn)
    pen.ellipse((0.66 * side, 0.06 * side, 0.94 * side, 0.34 * side), outline="white", width=max(2, side // 32))
    pen.text((0.72 * side, 0.15 * side), "OK", fill="white")
    return Image.blend(image, drawn, 0.6)


def half_black(image, rng):
    drawn = image.copy()
    ImageDraw.Draw(drawn).rectangle((image.width // 2, 0, image.width, image.height), fill="black")
    return drawn


def border(image, rng):
    width = image.width // 16
    return ImageOps.expand(image.crop((width, width, image.width - width, image.height - width)), width, (180, 30, 30))


def backlit(x, rng):
    away = np.sqrt(radius_of(x))
    return x * (0.25 + 0.75 * away) + 110 * np.clip(away - 0.35, 0, 1)


def soft_background(image, rng):
    mask = Image.fromarray((255 * (radius_of(np.asarray(image)) < 0.14))[..., 0].astype("u1"))
    mask = mask.filter(ImageFilter.GaussianBlur(image.width / 40))
    return Image.composite(image, image.filter(ImageFilter.GaussianBlur(image.width / 28)), mask)


def motion_blur(x, rng):
    return np.mean([np.roll(x, (step // 2, step), (0, 1)) for step in range(-3, 4)], 0)


def specks(x, rng):
    chance = rng.random(x.shape[:2])[..., None]
    return np.where(chance < 0.03, 0, np.where(chance > 0.97, 255, x))


def resampled(factor):
    def changed(image, rng):
        side = round(image.width * factor)
        return image.resize((side, side), BICUBIC).resize(image.size, BICUBIC)

    return changed


def pixelated(image, rng):
    side = image.width // 4
    return image.resize((side, side), Image.Resampling.BOX).resize(image.size, Image.Resampling.NEAREST)


def middle(image, wide, high):
    """Cut the middle out of an image, parts of its width and height, and enlarge it to the same size."""
    left, top = image.width * (1 - wide) / 2, image.height * (1 - high) / 2
    return image.resize(image.size, BICUBIC, box=(left, top, image.width - left, image.height - top))


def tilted(image, rng):
    return middle(image.rotate(float(rng.choice([-12, 12])), BICUBIC), 0.72, 0.72)


def mirrored(x, rng):
    left = x[:, : x.shape[1] // 2]
    return np.concatenate([left, left[:, ::-1]], 1)


def tiles(image, rng):
    small = np.asarray(image.resize((image.width // 2, image.height // 2), BICUBIC))
    return Image.fromarray(np.tile(small, (2, 2, 1)))


def cropped(image, pixels, quality):
    """Cut one edge off, enlarge what is left to the same size, and code it as JPEG."""
    box = (pixels, pixels, image.width, image.height)
    return as_jpeg(image.resize(image.size, BICUBIC, box=box), quality)


def copies(share, change=lambda image: image):
    """Return a plant of copies of the reference."""

    def plant(drawn, rng):
        count = round(share * len(drawn.images))
        sources = rng.permutation(len(drawn.reference))[:count]
        for place, source in zip(rng.permutation(len(drawn.images))[:count].tolist(), sources.tolist(), strict=True):
            drawn.images[place] = change(drawn.reference[source])

    return plant


def from_few(name, pictures, pixels, share=None):
    """Return a plant of samples made of few pictures of a class: all of the class, or a share of the set."""

    def plant(drawn, rng):
        places = [place for place, each in enumerate(drawn.classes) if each == name]
        kept = [drawn.images[place] for place in places[:pictures]]
        if share is not None:
            places = rng.permutation(len(drawn.images))[: round(share * len(drawn.images))].tolist()
        for number, place in enumerate(places):
            moved = np.asarray(kept[number % pictures])
            if pixels:
                dy, dx = rng.integers(0, 2 * pixels + 1, 2)
                moved = np.pad(moved, ((pixels, pixels), (pixels, pixels), (0, 0)), "edge")
                moved = moved[dy : dy + kept[0].height, dx : dx + kept[0].width]
            drawn.images[place], drawn.classes[place] = Image.fromarray(moved), name

    return plant


LIGHT = "dark|bright|contrast|flat|harsh|shade|posteriz|pale|vivid"
SOFT = "blur|soft|unsharp|less sharp|out of focus|low.?res"
MARK = "mark|logo|stamp|badge|same (place|spot)|one place"
COPIED = r"\bcop(y|ies)|near.{0,12}(equal|identical)|duplicate|memori"
SAME = r"repeat|same picture|times|few pictures|(three|four|3|4) pictures|copies|alike|variants"
TINT = "tint|colou?r cast"

tint = of_pixels(lambda x, rng: x * (1.12, 1.0, 0.82))
blur = lambda radius: lambda image, rng: image.filter(ImageFilter.GaussianBlur(radius))  # noqa: E731
jpeg = lambda quality: lambda image, rng: as_jpeg(image, quality)  # noqa: E731
gray = lambda image, rng: ImageOps.grayscale(image).convert("RGB")  # noqa: E731
noise = of_pixels(lambda x, rng: x + 22 * rng.normal(size=x.shape))
vignette = of_pixels(lambda x, rng: x * (1 - 0.75 * radius_of(x)))
dimmed = of_pixels(lambda x, rng: 255 * (x / 255) ** 1.7)
overexposed = of_pixels(lambda x, rng: 1.9 * x + 20)
green = of_pixels(lambda x, rng: x * (0.82, 1.12, 0.82))
sepia = lambda image, rng: ImageOps.colorize(ImageOps.grayscale(image), (35, 20, 5), (255, 238, 205))  # noqa: E731
halos = lambda image, rng: image.filter(ImageFilter.UnsharpMask(2, 300, 0))  # noqa: E731


def pictures(name, kind, change, share, words, **others):
    """Return a fault of pictures: of a share of the set, or of all of it."""
    parts = (Part(words, None if share == 1 else 100 * share),)
    return Fault(name, kind, of_some(change, share), parts, **others)


LOCAL = [
    pictures("black square in a fifth", "local", patch, 0.2, f"patch|square|box|spot|cover|{MARK}", follows=LIGHT),
    pictures(
        "writing in 15 %", "local", writing, 0.15, f"writing|text|letter|caption|words|{MARK}", follows="vivid|yel"
    ),
    pictures("stamp in 30 %", "local", stamp, 0.3, MARK, source="photos 128"),
    pictures("half black in 8 %", "local", half_black, 0.08, "half|black|cut|one side|bars|cover", follows=LIGHT),
    pictures(
        "red border in 10 %", "local", border, 0.1, "border|frame|bars|edge", follows=f"red|{TINT}|{LIGHT}|pattern"
    ),
]  # fmt: skip
OF_LIGHT = [
    pictures("vignette in 60 %", "light", vignette, 0.6, "vignett|edges|corners", follows=LIGHT),
    pictures("gamma 1.7 in all", "light", dimmed, 1, "dark|dim|gamma", follows="contrast|harsh|vivid"),
    pictures("overexposed quarter", "light", overexposed, 0.25, "overexpos|bright|blown|washed", follows=LIGHT),
    pictures("backlit fifth", "light", of_pixels(backlit), 0.2,
             "backlit|against the light|silhouet|edges|middle|center",
             follows=LIGHT, source="photos 128"),
    pictures("low contrast in 30 %", "light", lambda im, rng: ImageEnhance.Contrast(im).enhance(0.4), 0.3,
             "contrast|flat|haz|fad|washed", follows="pale|shade|posteriz"),
    pictures("green tint in 40 %", "light", green, 0.4, f"green|{TINT}", follows=LIGHT),
    pictures("sepia in 8 %", "light", sepia, 0.08, f"sepia|brown|toned|one colou?r|monochrom|{TINT}", follows=LIGHT),
    pictures("negatives in 10 %", "light", lambda im, rng: ImageOps.invert(im), 0.1, "invert|negativ|solari",
             follows=f"{LIGHT}|tint|blu|red|green|purpl"),
]  # fmt: skip
TEXTURE = [
    pictures("JPEG 5 in 15 %", "texture", jpeg(5), 0.15, "JPEG|compress|block",
             follows="posteriz|shade|pale|pattern|blur"),
    pictures("JPEG 30 in all", "texture", jpeg(30), 1, "JPEG|compress|block", follows=SOFT, source="photos 128"),
    pictures("blur in 35 %", "texture", blur(1.4), 0.35, SOFT, false="JPEG|pixelat"),
    pictures("motion blur in a fifth", "texture", of_pixels(motion_blur), 0.2, f"motion|smear|streak|{SOFT}",
             false="JPEG|pixelat"),
    pictures("soft backgrounds in 30 %", "texture", soft_background, 0.3, f"background|edges|{SOFT}",
             false="JPEG|pixelat",
             source="photos 128"),
    pictures("halos in 40 %", "texture", halos, 0.4, "sharpen|halo|sharper", follows="nois|contrast|harsh|vivid",
             source="photos 128"),
    pictures("resampled 5/8 in a half", "texture", resampled(5 / 8), 0.5, f"resampl|scaled|resiz|{SOFT}", false="JPEG",
             source="photos 128"),
    pictures("resampled 9/16 in all", "texture", resampled(9 / 16), 1, f"resampl|scaled|resiz|{SOFT}", false="JPEG"),
    pictures("pixelated tenth", "texture", pixelated, 0.1, "pixelat|upscal|block|mosaic|squares",
             follows="pattern|sharp"),
    pictures("noise in a quarter", "texture", noise, 0.25, "nois|grain", follows="vivid|sharp"),
    pictures("banding in 30 %", "texture", lambda im, rng: ImageOps.posterize(im, 3), 0.3,
             "band|posteri|few(er)? (shades|colou?rs)", follows="dark|nois|contrast"),
]  # fmt: skip
GEOMETRY = [
    pictures("zoom 1.4 in all", "geometry", lambda im, rng: middle(im, 1 / 1.4, 1 / 1.4), 1,
             "zoom|crop|closer|magnif|enlarg", follows=f"{SOFT}|upscal|resampl", false="JPEG"),
    pictures("tilted 12° in 30 %", "geometry", tilted, 0.3, "tilt|rotat|turned|slant|zoom|crop",
             follows=f"{SOFT}|upscal|resampl", false="JPEG", source="photos 128"),
    pictures("mirrored halves in 15 %", "geometry", of_pixels(mirrored), 0.15, "mirror|symmetr|reflect|kaleid"),
    pictures("tiled in 8 %", "geometry", tiles, 0.08, "tile|repeat|collage|four|grid|several", follows="pattern|sharp"),
    pictures("upside down in a half", "geometry", lambda im, rng: im.rotate(180), 0.5, "upside|turned|flip|rotat",
             follows="at the (top|bottom)"),
    pictures("stretched 1.35 in all", "geometry", lambda im, rng: middle(im, 1 / 1.35, 1), 1,
             "stretch|wide|squash|squeez|aspect|distort", follows=f"{SOFT}|upscal|streak|resampl", false="JPEG"),
]  # fmt: skip
SETS = [
    Fault("a class lost", "sets", nothing, (Part("koala", 0, 13 / 3),), named="koala|bear", counts=(("koala", 0),)),
    Fault("a class halved", "sets", nothing, (Part("seashore|beach|coast|shore", 7.6, 15),),
          named="sea|shore|coast|beach",
          counts=(("seashore", 22),)),
    Fault("a class doubled", "sets", nothing, (Part("retriever|dog", 18.2, 10),), named="retriever|dog|Chihuahua",
          counts=(("golden_retriever", 60),)),
    Fault("a new class of 6 %", "sets", nothing, (Part("tarantula|spider", 6, 0),),
          named="tarantula|spider|insect|arach",
          counts=(("tarantula", 19),)),
    Fault("a class of three pictures", "sets", from_few("monarch", 3, 2), (Part(SAME, 4),),
          named="monarch|butterfl|insect", false=r"monarch[^.;]*\b0\.0 %"),
    Fault("copies of 10 %", "sets", copies(0.1), (Part(COPIED, 10),)),
    Fault("near copies of 20 %", "sets", copies(0.2, lambda im: cropped(im, 1, 85)), (Part(COPIED, 20),), follows=SOFT),
    Fault("30 % of four pictures", "sets", from_few("bullfrog", 4, 0, share=0.3), (Part(SAME, 30),),
          named="bullfrog|frog|amphib"),
]  # fmt: skip
PAIRS = [
    Fault("warm tint of all, a class lost", "pairs", of_some(tint, 1),
          (Part(f"red|warm|yellow|orange|{TINT}"), Part("jellyfish", 0, 4)), follows=LIGHT,
          named="jellyfish|invert|fish",
          counts=(("jellyfish", 0),)),
    Fault("blur in a fifth, a class lost", "pairs", of_some(blur(1.6), 0.2), (Part(SOFT, 20), Part("pizza", 0, 13 / 3)),
          named="pizza|food|dish", false="JPEG", counts=(("pizza", 0),)),
    Fault("watermark in 15 %, JPEG 8 in a fifth", "pairs", both(of_some(stamp, 0.15), of_some(jpeg(8), 0.2)),
          (Part(MARK, 15), Part("JPEG|compress|block", 20)), follows="posteriz|shade|pale|pattern|blur"),
    Fault("a gray class", "pairs", of_some(gray, "goldfish"), (Part("gr[ae]y|colou?rless|without colou?r|monochr", 4),),
          follows="pale", named="goldfish|fish", false=r"goldfish[^.;]*\b0\.0 %"),
]  # fmt: skip
NOTHING = [Fault(f"nothing, draw {draw}", "nothing", nothing) for draw in range(1, 5)]
OTHERS = [
    pictures("digits: specks in 10 %", "others", of_pixels(specks), 0.1, "speck|nois|salt|dots", follows=LIGHT,
             named=".",
             source="digits"),
    pictures("digits: blur in 30 %", "others", blur(0.9), 0.3, SOFT, follows=LIGHT, false="JPEG",
             source="digits"),
    Fault("clips: a third stops halfway", "others", "stops", (Part("still|stop|fr[oe]e?z|repeated frames", 33),),
          follows="slow|jump|uneven", source="clips"),
    Fault("clips: a quarter flickers", "others", "flickers", (Part("flicker", 25),), follows="jump|uneven|bright|dark",
          source="clips"),
]  # fmt: skip


def _halved(faults):
    """Return faults with the half of each: halves alternate."""
    return [replace(fault, half=("shown", "held")[place % 2]) for place, fault in enumerate(faults)]


FAULTS = _halved([*LOCAL, *OF_LIGHT, *TEXTURE, *GEOMETRY, *SETS, *PAIRS, *NOTHING, *OTHERS])
