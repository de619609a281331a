"""What the first sentence of a comparison claims of sets of one law: the sets, their looks, their kinds, anything.

Every regime draws two sets of one law. *photographs*: disjoint random parts of real photographs, with their pictures,
in features of EfficientNet-Lite0; *prompts*: 150 pairs, whose samples resemble each other; *groups*: groups of unlike
numbers and sizes, whose samples resemble each other; *sketches*: the moments alone. Other laws are those of
`inference_null.py`. The sets and their looks claim something at `LOOKS_ALPHA`, kinds at .05.
"""

import io
import zipfile
from functools import cache, partial

import _real
import numpy as np
from _designs import clusters, copies, digits, heavy_tails, photographs, real, same_law
from _record import record
from _runs import rate, run
from PIL import Image

import finc_eval as fe
from finc_eval.naming.looks import LOOKS_ALPHA

ALPHA, RUNS, FEATURES = 0.05, 400, 512
TIGHT = partial(clusters, 50, 32, spread=0.1)
NEAR = 0.3
"""Noise of the samples of a group or a prompt; samples of the law itself have noise 1."""


def two_sets(law, n, m, seed):
    rng = np.random.default_rng(seed)
    return fe.compare(*(part.rows for part in same_law(law()(rng), rng, n, m)), features=FEATURES, seed=seed)


def sketches(law, n, m, seed):
    rng = np.random.default_rng(seed)
    gen, ref = (part.rows for part in same_law(law()(rng), rng, n, m))
    reference = fe.Sketch.reference(ref, features=FEATURES, seed=seed)
    return fe.compare(*(fe.Sketch.of(rows, reference.feature_map) for rows in (gen, ref)), seed=seed)


def groups(designs, seed):
    """Compare sets of groups; a design is a number of groups and the size of each."""
    rng = np.random.default_rng(seed)
    parts = same_law(clusters(20, 64)(rng), rng, *(count for count, _ in designs))
    sets = []
    for part, (_, size) in zip(parts, designs, strict=True):
        rows, group = copies(part, size, NEAR, rng)
        sets.append(fe.EmbeddingSet(rows, metadata={"group": [str(one) for one in group]}))
    return fe.compare(*sets, groups="group", features=FEATURES, seed=seed)


def prompts(count, each, seed):
    """Compare sets with `each` samples of each prompt."""
    rng = np.random.default_rng(seed)
    (part,) = same_law(clusters(20, 64)(rng), rng, count)
    sets = []
    for _ in "ab":
        rows, prompt = copies(part, each, NEAR, rng)
        sets.append(fe.EmbeddingSet(rows, metadata={"prompt": [str(one) for one in prompt]}))
    return fe.compare(*sets, pairs="prompt", features=FEATURES, seed=seed)


@cache
def pictures():
    """Return the photographs of `photographs`, in its order."""
    with zipfile.ZipFile(_real.asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        return [archive.read(name) for name in sorted(archive.namelist()) if name.endswith(".JPEG")]


def with_pictures(n, m, seed):
    rows, _ = photographs()
    order = np.random.default_rng(seed).permutation(len(rows))[: n + m]
    sets = [
        fe.EmbeddingSet(rows[part], images=[Image.open(io.BytesIO(pictures()[index])).convert("RGB") for index in part])
        for part in (order[:n], order[n:])
    ]
    return fe.compare(*sets, features=FEATURES, seed=seed)


REGIMES = {
    **{f"tight-{n}-{m}": partial(two_sets, TIGHT, n, m) for n, m in ((60, 60), (60, 600), (1000, 1000))},
    "t2-400-400": partial(two_sets, partial(heavy_tails, 16, 2), 400, 400),
    "digits-500-500": partial(two_sets, partial(real, digits), 500, 500),
    "sketches-400-400": partial(sketches, TIGHT, 400, 400),
    "groups-100x3-40x8": partial(groups, ((100, 3), (40, 8))),
    "groups-60x4-60x4": partial(groups, ((60, 4), (60, 4))),
    "prompts-150x1": partial(prompts, 150, 1),
    "prompts-60x4": partial(prompts, 60, 4),
    "photographs-200-200": partial(with_pictures, 200, 200),
    "photographs-500-500": partial(with_pictures, 500, 500),
}


def one(regime, seed):
    """Return what a comparison of two sets of one law claims."""
    found = REGIMES[regime](seed)
    sets = found.sets_p_value is not None and found.sets_p_value <= LOOKS_ALPHA
    kinds = bool(found.significant(ALPHA)) or (found.difference_p_value or 1) <= ALPHA
    return {"sets": sets, "looks": bool(found.looks), "kinds": kinds, "any": sets or kinds or bool(found.looks)}


def report(found):
    """Record the rate of every regime."""
    columns = {"the sets": "sets", "a look": "looks", "kinds": "kinds", "anything": "any"}
    rows = [
        {"regime": regime, **{title: rate(runs, key) for title, key in columns.items()}}
        for regime, runs in found.items()
    ]
    record("first_sentence", rows, f"runs that claim a difference, with 95 % intervals; r = {FEATURES}")


if __name__ == "__main__":
    run("first_sentence", REGIMES, one, report, RUNS)
