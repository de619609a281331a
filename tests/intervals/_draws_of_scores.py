"""Designs of scores of metrics: sets of a known law, drawn again and again.

An interval of a share in balls is over other samples of one set, the other set as it is: that set is the same in all
repetitions. The mean over repetitions is the number that an interval should hold, where no closed form is known.
"""

from functools import partial

import numpy as np
from _law import Design, Drawn, Holds, NoClaim

from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.embeddings.embedding_set import EmbeddingSet
from finc_eval.measures.inputs import MetricInputs
from finc_eval.measures.registry import METRICS

INTERVAL = "Score.interval"

PROMISES = {
    INTERVAL: Holds(width=(0.8, 1.45), why="of grouped samples, too; fwd, coverage and FVD are not drawn"),
    "Score.unbiased": NoClaim("the number that Score.interval is around, and is held against the truth with"),
}


def scores_of(names, keys=None, **sets):
    """Yield the interval of each score of metrics."""
    for name in names:
        for score in METRICS[name].compute(MetricInputs(name, **sets)):
            if score.interval is not None and (keys is None or score.key in keys):
                yield score


def gaussian(rng, n, dim=4, shift=0.0, scale=1.0, per_unit=1, name="gen"):
    """Draw a set of a normal law; samples of a unit, if it has several, share most of what they are."""
    rows = rng.normal(shift, scale, (n, dim))
    if per_unit > 1:
        own = rng.normal(0.0, scale, (n // per_unit, dim)).repeat(per_unit, 0)
        rows = shift + 0.95 * own + np.sqrt(1 - 0.95**2) * (rows - shift)
    found = ArrayEmbeddings(rows.astype("f4"), name)
    return found if per_unit == 1 else found.with_groups(np.arange(n, dtype=np.uint64) // per_unit, "unit")


def fixed(**law):
    """Draw a set that is the same in all repetitions."""
    return gaussian(np.random.default_rng(20_000), **law)


def drawn_of(scores, truths=None):
    for score in scores:
        truth = (truths or {}).get(score.key)
        yield Drawn(INTERVAL, score.center, score.interval, truth, of=score.key)


# Fréchet distance of N(0.6, 1.2² I) and N(0, I) in four dimensions, and MMD² of their kernels by integration.
SHIFT, SCALE, DIM = 0.6, 1.2, 4
FRECHET = DIM * (SHIFT**2 + (SCALE - 1) ** 2)


def jedi_of(shift, scale, dim):
    """Return JEDi of two normal laws, from their second moments about zero."""
    apart = np.full((dim, dim), shift**2) + np.eye(dim) * (scale**2 - 1)
    return 100 * float((apart**2).sum()) / dim**2


TRUE = {"fd": FRECHET, "jedi": jedi_of(SHIFT, SCALE, DIM)}


def two_sets(rng, n, m, names, per_unit=1):
    gen = gaussian(rng, n, shift=SHIFT, scale=SCALE, per_unit=per_unit)
    ref = gaussian(rng, m, per_unit=per_unit, name="ref")
    yield from drawn_of(scores_of(names, gen=gen, ref=ref), TRUE)


OF_GEN = ("authpct", "precision", "density", "realism", "rarity", "rarity_outside", "rke", "inception_score_mean")
OF_GEN += ("vendi", "vendi_q2", "vendi_qinf", "vendi_truncated")


def generated_sets(rng, n, names, per_unit=1):
    """Draw generated sets against one reference."""
    gen = gaussian(rng, n, 6, 0.4, 1.1, per_unit)
    yield from drawn_of(scores_of(names, OF_GEN, gen=gen, ref=fixed(n=240, dim=6)))


def references(rng, n, per_unit=1):
    """Draw references against one generated set; coverage moves with the balls of references, and is not drawn."""
    ref = gaussian(rng, n, per_unit=per_unit, name="ref")
    yield from drawn_of(scores_of(["prdc"], ["recall"], gen=fixed(n=120, scale=0.8), ref=ref))


def tests_of_training(rng, n, per_unit=1):
    """Draw test sets for one generated set and one training set."""
    sets = {
        "gen": fixed(n=60, shift=0.3),
        "ref": fixed(n=80, scale=1.1),
        "test": gaussian(rng, n, per_unit=per_unit, name="test"),
    }
    yield from drawn_of(scores_of(["fld"], **sets))


def prompted(rng, prompts, images):
    """Draw prompts that are all different, with images that follow them."""
    words = rng.choice(["red", "blue", "old", "new", "big", "small", "wet", "dry", "far", "near"], (prompts, 3))
    texts = np.array([" ".join((*own, str(row))) for row, own in enumerate(words)]).repeat(images)
    rows = rng.normal(size=(prompts, 6)).repeat(images, 0) + rng.normal(0, 0.6, (prompts * images, 6))
    gen = EmbeddingSet(rows.astype("f4"), metadata={"prompt": texts.tolist()})
    yield from drawn_of(scores_of(["conditional_rke", "scendi"], gen=gen, ref=fixed(n=120, dim=6)))


QUICK = ("authpct", "prdc", "realism", "rarity", "rke", "inception_score", "vendi", "vendi_q2", "vendi_qinf")
PAIRS = ("fd", "kid", "mmd", "cmmd", "jedi")
DEAR = ("mind", "prd", "clipped")
IN = (INTERVAL,)

DESIGNS = (
    Design("two normal sets of 240", "small", IN, partial(two_sets, n=240, m=240, names=PAIRS), 40, 8),
    Design("normal sets of 400 and 600", "large", IN, partial(two_sets, n=400, m=600, names=PAIRS), 200, 0),
    Design(
        "240 samples of 60 units", "clustered", IN, partial(two_sets, n=240, m=240, names=PAIRS, per_unit=4), 300, 8
    ),
    Design("two normal sets of 200, dear metrics", "small", IN, partial(two_sets, n=200, m=200, names=DEAR), 100, 2),
    Design(
        "60 units, MIND and PRD",
        "clustered",
        IN,
        partial(two_sets, n=240, m=240, names=("mind", "prd"), per_unit=4),
        80,
        0,
    ),
    Design("generated sets of 240", "small", IN, partial(generated_sets, n=240, names=QUICK), 200, 5),
    Design(
        "generated sets of 60 units", "clustered", IN, partial(generated_sets, n=240, names=QUICK, per_unit=4), 200, 5
    ),
    Design("references of 60 units", "clustered", IN, partial(references, n=240, per_unit=4), 300, 0),
    Design("test sets of 60 units", "clustered", IN, partial(tests_of_training, n=240, per_unit=4), 60, 0),
    Design(
        "generated sets, truncated Vendi",
        "small",
        IN,
        partial(generated_sets, n=220, names=["vendi_truncated"]),
        100,
        0,
    ),
    Design(
        "shares in balls, 40 samples", "rare", IN, partial(generated_sets, n=40, names=("authpct", "prdc")), 300, 12
    ),
    Design("references of 240", "small", IN, partial(references, n=240), 300, 15),
    Design("test sets of 80", "small", IN, partial(tests_of_training, n=80), 60, 0),
    Design("60 prompts of three images", "clustered", IN, partial(prompted, prompts=60, images=3), 60, 2),
)
