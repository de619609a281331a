"""Cases of the benchmark of differences: two sets of pictures or clips, and what was planted in them.

Most pictures are packaged or drawn: digits, crops of the two photographs of scikit-learn, drawn shapes, a toy of
prompts, and clips of a camera that moves over crops. Photographs of 20 classes are added where FINC_EVAL_ASSETS is set.
A seed decides all draws. Classes and faults are not the same in all seeds.
"""

import io
import os
import zipfile
from dataclasses import asdict, dataclass, field
from functools import cache, partial

import numpy as np
import video_faults
from _planted_faults import COPIED, LIGHT, MARK, SAME, SOFT, TINT, as_jpeg, blur, gray, noise, patch, sepia, writing
from _real import asset
from PIL import Image, ImageDraw, ImageOps
from sklearn.datasets import load_sample_images

from _differences.judge import Planted
from finc_eval.demo.planted import shipped_digits
from finc_eval.demo.prompts import DIGITS, prompted_sets

SIDE = 64
SHAPES = ("circle", "square", "triangle", "cross")
CLIPS = 60  # clips of each set
SEEN_AS = {"elephant": "elephant|tusker", "frog": "frog", "tabby": r"tabby|\bcats?\b", "alp": r"\balp|mountain",
           "chihuahua": "chihuahua|dog", "retriever": "retriever|dog", "monarch": "monarch|butterfly",
           "seashore": "seashore|beach|coast|shore|sand", "bridge": "bridge", "convertible": "convertible|car",
           "sports": r"\bcar", "bus": r"\bbus", "penguin": "penguin", "tarantula": "tarantula|spider",
           "orangutan": r"\borang|\bapes?\b|monkey", "ladybug": "ladybug|ladybird|beetle", "goldfish": "fish",
           "bison": "bison|buffalo", "jellyfish": "jellyfish|medusa", "circle": r"circle|\bround|\bdis[ck]s?\b",
           "cross": "cross|plus", "lion": r"\blions?\b",
           **{str(digit): rf"“{digit}”|\b{name}s?\b|digit {digit}" for digit, name in enumerate(DIGITS)}}  # fmt: skip
"""Words for a class, by a part of its name, where these are not the name."""


@dataclass
class Case:
    """A case: samples of both sets, the planted differences, and the extractor that all tools use.

    Samples are images, or arrays of frames (frames, height, width, 3); `prompts` has the prompt of each, by set.
    """

    name: str
    extractor: str
    sets: dict
    planted: list
    prompts: dict = field(default_factory=dict)

    def save(self, folder):
        """Write the samples, and their prompts."""
        for label, samples in self.sets.items():
            (folder / label).mkdir(parents=True)
            for number, sample in enumerate(samples):
                if isinstance(sample, np.ndarray):
                    (folder / label / f"{number:04d}").mkdir()
                    for place, frame in enumerate(sample):
                        Image.fromarray(frame).save(folder / label / f"{number:04d}/{place:02d}.png", compress_level=1)
                else:
                    sample.save(folder / label / f"{number:04d}.png", compress_level=1)
            if self.prompts:
                lines = [f"{number:04d}.png,{text}" for number, text in enumerate(self.prompts[label])]
                (folder / label / "metadata.csv").write_text("\n".join(["file_name,prompt", *lines]))

    @property
    def truth(self):
        sizes = {label: len(samples) for label, samples in self.sets.items()}
        return {"extractor": self.extractor, "sizes": sizes, "planted": [asdict(each) for each in self.planted]}


# --- pictures by class


@cache
def photographs():
    found = {}
    with zipfile.ZipFile(asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".JPEG"):
                found.setdefault(name.split("/")[0], []).append(archive.read(name))
    return found


class Photographs:
    """Photographs of 20 classes, each drawn once."""

    def __init__(self, rng):
        self.classes = rng.permutation(sorted(photographs()))[:20].tolist()
        self.left = {name: rng.permutation(len(photographs()[name])).tolist() for name in self.classes}

    def take(self, name, rng):
        return Image.open(io.BytesIO(photographs()[name][self.left[name].pop()])).convert("RGB")


class Digits:
    """Digits, each drawn once."""

    def __init__(self, rng):
        self.images, labels = shipped_digits()
        self.classes = [str(digit) for digit in range(10)]
        self.left = {name: rng.permutation(np.flatnonzero(labels == int(name))).tolist() for name in self.classes}

    def take(self, name, rng):
        return Image.fromarray(self.images[self.left[name].pop()]).convert("RGB")


class Crops:
    """Crops of a photograph of a temple and of a flower, some of them mirrored."""

    def __init__(self, rng):
        self.classes = ["temple", "flower"]
        self.pictures = dict(zip(self.classes, map(Image.fromarray, load_sample_images().images), strict=True))

    def take(self, name, rng):
        picture, side = self.pictures[name], int(rng.integers(90, 180))
        left, top = (int(rng.integers(0, most - side)) for most in picture.size)
        made = picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC, box=(left, top, left + side, top + side))
        return ImageOps.mirror(made) if rng.random() < 0.5 else made


class Shapes:
    """Shapes of any color on a ground that runs from one color to another, with grain."""

    def __init__(self, rng):
        self.classes = list(SHAPES)

    def take(self, name, rng):
        ends = rng.integers(40, 216, (2, 3))
        ramp = np.linspace(0, 1, SIDE)[:, None, None] * np.ones((1, SIDE, 1))
        pixels = ends[0] * (1 - ramp) + ends[1] * ramp + 6 * rng.normal(size=(SIDE, SIDE, 3))
        image = Image.fromarray(np.clip(pixels, 0, 255).astype("u1"))
        pen, half, (x, y) = ImageDraw.Draw(image), int(rng.integers(10, 18)), rng.integers(20, SIDE - 20, 2).tolist()
        color, box = tuple(rng.integers(0, 256, 3).tolist()), (x - half, y - half, x + half, y + half)
        if name == "circle":
            pen.ellipse(box, fill=color)
        elif name == "square":
            pen.rectangle(box, fill=color)
        elif name == "triangle":
            pen.polygon([(x, y - half), (x - half, y + half), (x + half, y + half)], fill=color)
        else:
            pen.line((x - half, y, x + half, y), fill=color, width=6)
            pen.line((x, y - half, x, y + half), fill=color, width=6)
        return image


def of_classes(classes, n, which="", share=0.0):
    """Return the class of each of n samples: equal shares, but this share of one of them."""
    others = [name for name in classes if name != which]
    return [which] * round(share * n) + np.resize(others, n - round(share * n)).tolist()


# --- pictures: what is planted


@dataclass(frozen=True)
class Changed:
    """A change of a share of the generated set."""

    change: object
    share: float
    words: str
    follows: str = "$^"

    def plant(self, images, taken, rng):
        places = rng.permutation(np.setdiff1d(np.arange(len(images)), [*taken]))[: round(self.share * len(images))]
        taken |= {*places.tolist()}
        first = images[places[0]]
        for place in places.tolist():
            images[place] = self.change(images[place], rng, first)
        return Planted("gen", ids_of("gen", places), self.share, self.words, self.follows)


@dataclass(frozen=True)
class OfClass:
    """A class with another share in the generated set than in the reference; a seed chooses it."""

    gen: float
    ref: float


def ids_of(label, places, end=".png"):
    return tuple(f"{label}/{place:04d}{end}" for place in sorted(places))


def plain(change):
    """Return a change that does not ask for the first of the changed images."""
    return lambda image, rng, first: change(image, rng)


NO_COLOR = r"colou?rless|(without|no|lack\w*) colou?r|desaturated"
FAULTS = {
    "gray": Changed(plain(gray), 0.12, f"gr[ae]y|black.and.white|monochrom|{NO_COLOR}", f"{LIGHT}|sepia|{TINT}"),
    "blurred": Changed(plain(blur(1.5)), 0.25, SOFT, f"{LIGHT}|smooth|nois"),
    "noisy": Changed(plain(noise), 0.15, "nois|grain", f"sharp|{LIGHT}"),
    "square": Changed(plain(patch), 0.2, f"patch|square|box|spot|cover|{MARK}", LIGHT),
    "writing": Changed(plain(writing), 0.15, f"writing|text|letter|caption|words|{MARK}", "vivid|yel"),
    "JPEG": Changed(plain(lambda im, r: as_jpeg(im, 5)), 0.2, "JPEG|compress|block", f"{LIGHT}|{SOFT}|pattern"),
    "sepia": Changed(plain(sepia), 0.1, f"sepia|brown|toned|one colou?r|monochrom|{TINT}", f"{LIGHT}|yel|orange|red"),
    "inverted": Changed(plain(lambda im, r: ImageOps.invert(im)), 0.12, "invert|negativ", f"{LIGHT}|white"),
    "upside down": Changed(
        plain(lambda im, r: ImageOps.flip(ImageOps.mirror(im))), 0.2, "upside|turned|rotat|flip|180"
    ),
    "one picture": Changed(lambda im, r, first: first, 0.1, f"{SAME}|{COPIED}|identical|same image"),
}
OF_PICTURES = {
    "photographs": (
        Photographs,
        "efficientnet-lite0",
        150,
        (
            *(("gray",), ("square",), ("upside down",), ("one picture",), ("noisy", OfClass(0.15, 0.05))),
            *((OfClass(0.0, 0.1),), (OfClass(0.2, 0.05),), ()),
        ),
    ),
    "crops": (Crops, "efficientnet-lite0", 200, (("noisy",), ("writing",), ("blurred", "sepia"), (), ())),
    "shapes": (Shapes, "efficientnet-lite0", 150, (("gray",), (OfClass(0.02, 0.2),), ("JPEG", OfClass(0.4, 0.2)), ())),
    "digits": (
        Digits,
        "pixels",
        300,
        (("inverted",), ("blurred",), ("one picture",), (OfClass(0.01, 0.1),), (OfClass(0.2, 0.1),), (), ()),
    ),
}
"""Pictures, the extractor, samples of each set, and what is planted in each case, by the name of the source."""


def picture_case(source, number, seed):
    """Draw the case of a source: pictures of both sets, in which what is listed is planted."""
    pool, extractor, n, plants = OF_PICTURES[source]
    rng = np.random.default_rng([seed, [*OF_PICTURES].index(source), number])
    pictures, plants = pool(rng), plants[number]
    of_class = next((each for each in plants if isinstance(each, OfClass)), None)
    which = str(rng.choice(pictures.classes)) if of_class else ""
    kinds, sets = {}, {}
    for label in ("gen", "ref"):
        names = of_classes(pictures.classes, n, which, getattr(of_class, label, 0.0))
        kinds[label] = rng.permutation(names).tolist()
        sets[label] = [pictures.take(name, rng) for name in kinds[label]]
    taken, planted = set(), []
    for each in plants:
        planted.append(of_shares(kinds, which) if each is of_class else FAULTS[each].plant(sets["gen"], taken, rng))
    words = [
        which and f"{'more' if of_class.gen > of_class.ref else 'less'} {which}" if e is of_class else e for e in plants
    ]
    return Case(f"{source} {number}: {' and '.join(words) or 'nothing'}", extractor, sets, planted)


def of_shares(kinds, which):
    """Return the difference of a class that one set has more of."""
    shares = {label: np.mean([kind == which for kind in names]) for label, names in kinds.items()}
    side = max(shares, key=lambda label: shares[label])
    ids = [ids_of(label, [n for n, kind in enumerate(names) if kind == which]) for label, names in kinds.items()]
    return Planted(side, ids[0] + ids[1], float(abs(shares["gen"] - shares["ref"])), words_of_class(which))


def words_of_class(name):
    """Return a regular expression of what people call a class."""
    return next((seen for part, seen in SEEN_AS.items() if part in name.lower()), name.replace("_", " "))


# --- prompts and clips


def prompt_case(number, seed):
    """Draw two models on the same prompts: the toy of the package with its three faults, or without them."""
    gen, ref = prompted_sets(100, 4, 1000 * seed + number, faults=number < 2)
    sets = {label: [*map(Image.fromarray, each.images)] for label, each in (("gen", gen), ("ref", ref))}
    prompts = {"gen": gen.prompts, "ref": ref.prompts}
    words = {"seven": "seven|one", "purple": "purple|blue", "pink": f"pink|{SAME}"} if number < 2 else {}
    planted = []
    for word, said in words.items():
        # Where a model draws a one for a seven, the other set has sevens that it lacks; repeats are of one set.
        labels = ("gen",) if word == "pink" else ("gen", "ref")
        places = [place for place, text in enumerate(gen.prompts) if word in text.split()]
        ids = tuple(name for label in labels for name in ids_of(label, places))
        planted.append(Planted("either" if len(labels) > 1 else "gen", ids, len(places) / len(gen.prompts), said))
    return Case(f"prompts {number}: {', '.join(words) or 'nothing'}", "pixels", sets, planted, prompts)


OF_CLIPS = {
    "stop": (lambda scene, rng: video_faults.still_second_half(scene), "fr[eo]ez|frozen|still|stop|stand|repeated"),
    "flicker": (lambda scene, rng: video_faults.flickers(scene, 2), "flicker|strob|blink"),
}


def clip_case(number, seed):
    """Draw clips of a camera that moves over crops; a quarter of the generated ones has a fault."""
    rng = np.random.default_rng([seed, 100, number])
    pictures = [Image.fromarray(each) for each in load_sample_images().images]
    scenes = [video_faults.camera_move(pictures[n % 2], rng) for n in rng.permutation(2 * CLIPS)]
    fault = [*OF_CLIPS, ""][number]
    places = rng.permutation(CLIPS)[: CLIPS // 4] if fault else []
    made = {"gen": [*map(video_faults.clip_of, scenes[:CLIPS])], "ref": [*map(video_faults.clip_of, scenes[CLIPS:])]}
    for place in places:
        made["gen"][place] = OF_CLIPS[fault][0](scenes[place], rng)
    planted = (
        [Planted("gen", ids_of("gen", places, ""), 0.25, OF_CLIPS[fault][1], "motion|mov|slow|fast")] if fault else []
    )
    return Case(f"clips {number}: {fault or 'nothing'}", "motion", made, planted)


def all_cases(seed):
    """Return a function that draws each case, by a key."""
    sources = [name for name in OF_PICTURES if name != "photographs" or os.environ.get("FINC_EVAL_ASSETS")]
    made = {
        f"{source} {number}": partial(picture_case, source, number, seed)
        for source in sources
        for number in range(len(OF_PICTURES[source][3]))
    }
    made |= {f"prompts {number}": partial(prompt_case, number, seed) for number in range(4)}
    return made | {f"clips {number}": partial(clip_case, number, seed) for number in range(3)}
