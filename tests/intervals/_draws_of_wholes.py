"""Designs of labels and words that kinds are parts of, with their shares of sets."""

from functools import partial

import numpy as np
from _law import Design, Drawn, Holds

import finc_eval as fe
from finc_eval.naming.parts import Property
from finc_eval.partitions.blocks import pair
from finc_eval.partitions.wholes import Wholes

PROMISES = {
    "Whole.interval": Holds(
        together=True, width=(0.9, 1.5), why="it counts all shares, and of few prompts what one prompt may change"
    )
}

LABELS = np.array(["red car", "red dog", "blue dog", "tree"])
PROPERTIES = (*(Property("label", one) for one in LABELS), Property("label", "dog", is_word=True))
HAVE = np.array([*np.eye(4), [0, 1, 1, 0]])  # which labels have which properties


def labeled(law, size, rng, n, column):
    """Return a set of samples with labels; `size` samples in a row have one label, and one value of a column."""
    label = LABELS[rng.choice(4, n // size, p=law)].repeat(size)
    metadata = {"label": label.tolist(), column: [f"{column} {row // size}" for row in range(n)]}
    return fe.EmbeddingSet(np.zeros((n, 2), np.float32), metadata=metadata)


def drawn_wholes(found, truths):
    for one, truth in zip(PROPERTIES, truths, strict=True):
        yield Drawn("Whole.interval", *found.found[one].seen_from("gen"), truth)


def two_sets(rng, n, m, law, moved=0.0, size=1):
    """Two sets with labels; a part of gen has the last label in place of its own. Windows of a video have one label."""
    law = np.array(law)
    laws = ((1 - moved) * law + moved * np.eye(4)[-1], law)
    sets = {
        name: labeled(own, size, rng, count, "video").grouped("video" if size > 1 else None)
        for name, own, count in zip(("gen", "ref"), laws, (n, m), strict=True)
    }
    yield from drawn_wholes(Wholes.of(PROPERTIES, sets, 1.0), HAVE @ (laws[0] - laws[1]))


def images_of_prompts(rng, prompts, images, moved):
    """Images of the same prompts; the labels of a prompt have a law, and a part of gen has the last label."""
    ref = rng.dirichlet(np.ones(4), prompts)
    gen = (1 - moved) * ref + moved * np.eye(4)[-1]
    sets = {}
    for name, laws in (("gen", gen), ("ref", ref)):
        label = np.concatenate([LABELS[rng.choice(4, images, p=law)] for law in laws]).tolist()
        prompt = [f"prompt {row}" for row in range(prompts) for _ in range(images)]
        rows = np.zeros((len(label), 2), np.float32)
        sets[name] = fe.EmbeddingSet(rows, metadata={"label": label, "prompt": prompt})
    pairing, _ = pair(sets, "prompt")
    found = Wholes.of(PROPERTIES, pairing.sets, 1.0, pairing, int(rng.integers(1000)))
    yield from drawn_wholes(found, HAVE @ (gen - ref).mean(0))


def _design(name, regime, draw=two_sets, runs=300, quick=20, **options):
    return Design(name, regime, ("Whole.interval",), partial(draw, **options), runs, quick)


EVEN = (0.25, 0.25, 0.25, 0.25)

DESIGNS = (
    _design("labels of 400 and 600", "large", n=400, m=600, law=EVEN),
    _design("labels of 400 and 600, moved", "large", n=400, m=600, law=EVEN, moved=0.3),
    _design("labels of 40 and 60", "small", n=40, m=60, law=EVEN),
    _design("labels of 400 and 2000, a rare label", "rare", n=400, m=2000, law=(0.02, 0.08, 0.3, 0.6), moved=0.2),
    _design("labels of videos", "clustered", n=800, m=800, law=EVEN, moved=0.2, size=4),
    _design("labels of prompts", "paired", images_of_prompts, 100, 4, prompts=40, images=3, moved=0.0),
    _design("labels of prompts, moved", "paired", images_of_prompts, 100, 4, prompts=40, images=3, moved=0.3),
)
