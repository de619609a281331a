"""Measure how often a comparison claims a difference between two sets of one law.

    python benchmarks/first_sentence.py [whole | sets | looks | power] [--regime … --runs … --jobs …]

*whole*: whole comparisons; anything is whatever their headline claims. *sets* and *looks*: these tests alone, which are
cheap. *sets* is also measured as `kinds`, boards and gates take it, and as two releases without samples do. *power*:
slight changes of every sample, 500 against 500, and 60 clips against 60, where all or a quarter are twice as fast;
found by the test of the sets, and by the MMD of a Gaussian kernel with the median distance and 199 permutations.

Every regime draws two sets of one law, n against m. *photographs*: disjoint random parts of real photographs, with
their pictures, in features of EfficientNet-Lite0; *mixed*: of photographs, gray ones, small ones and drawn digits.
*prompts*: B × k pairs, whose samples resemble each other; *groups*: G groups of s samples that are alike, twice;
*sketches*: the moments alone. *t2*, *cauchy*, *binary*, *sparse* and *narrow*: independent t variables, signs, mostly
zeros, and one axis with most of the variance. *zipf*: repeats of 300 points by Zipf's law.
"""

import io
import re
import sys
import zipfile
from functools import cache, partial

import _real
import numpy as np
from _designs import Source, clusters, copies, digits, heavy_tails, photographs, real, same_law
from _record import record
from _runs import counted, rate, run
from PIL import Image, ImageOps

import finc_eval as fe
from finc_eval.comparison.inputs import sketch_sets
from finc_eval.comparison.score_pass import score_sets
from finc_eval.comparison.sets_test import sets_p_value, unit_features
from finc_eval.comparison.settings import Settings
from finc_eval.core.run import Run
from finc_eval.naming import measured
from finc_eval.naming.looks import find_looks
from finc_eval.numerics.exchanges import MeanLaw
from finc_eval.numerics.inference import ALPHA, BESIDE_ALPHA
from finc_eval.sketches.one_law import sets_p_values

RUNS, CHEAP, FEATURES = 400, 200, 256
TIGHT = partial(clusters, 50, 32, spread=0.1)
NEAR = 0.3
"""Noise of the samples of a group or a prompt; samples of the law itself have noise 1."""


def law_of(draw_rows):
    """Return a law of one kind, from a function of (rng, number of rows)."""

    def opened(rng):
        return Source(np.ones(1), lambda which: draw_rows(rng, len(which)).astype(np.float32), lambda: None)

    return opened


def binary():
    return law_of(lambda rng, n: rng.choice([-1.0, 1.0], (n, 40)))


def sparse():
    return law_of(lambda rng, n: np.maximum(rng.normal(size=(n, 64)) - 1.5, 0))


def narrow():
    return law_of(lambda rng, n: rng.normal(size=(n, 64)) * np.append(30.0, np.ones(63)))


def wide():
    return law_of(lambda rng, n: rng.normal(size=(n, 2048)))


def zipf_points():
    def opened(rng):
        points, shares = rng.normal(size=(300, 16)), 1 / np.arange(1, 301)
        return law_of(lambda rng, n: points[rng.choice(300, n, p=shares / shares.sum())])(rng)

    return opened


def clips():
    return real(cache_of_clips)


@cache
def cache_of_clips():
    return _real.ucf101()


def plain(law, n, m, rng):
    """Return two arrays, and no options."""
    return [part.rows for part in same_law(law()(rng), rng, n, m)], {}


def groups(designs, rng):
    """Return sets of groups; a design is a number of groups and the size of each, or the mean of a geometric size."""
    parts = same_law(clusters(20, 64)(rng), rng, *(count for count, _ in designs))
    sets = []
    for part, (_, size) in zip(parts, designs, strict=True):
        sizes = np.full(len(part.rows), size) if isinstance(size, int) else rng.geometric(1 / size, len(part.rows))
        group = np.repeat(np.arange(len(sizes)), sizes)
        rows = part.rows[group]
        rows = (rows + NEAR * rng.standard_normal(rows.shape)).astype(np.float32)
        sets.append(fe.EmbeddingSet(rows, metadata={"group": [str(one) for one in group]}))
    return sets, {"groups": "group"}


def prompts(count, each, rng):
    """Return sets with some samples of each prompt; the samples of a set and prompt are alike."""
    (part,) = same_law(clusters(20, 64)(rng), rng, count)
    sets = []
    for n in each:
        rows, prompt = copies(part, n, NEAR, rng)
        sets.append(fe.EmbeddingSet(rows, metadata={"prompt": [str(one) for one in prompt]}))
    return sets, {"pairs": "prompt"}


@cache
def pictures():
    """Return the photographs of `photographs`, in its order."""
    with zipfile.ZipFile(_real.asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        return [archive.read(name) for name in sorted(archive.namelist()) if name.endswith(".JPEG")]


def picture(index):
    return Image.open(io.BytesIO(pictures()[index])).convert("RGB")


def source_of(index):
    """Return a picture of one of four sources."""
    image = picture(index)
    if index % 4 == 1:
        return ImageOps.grayscale(image).convert("RGB")
    if index % 4 == 2:
        return image.resize((40, 30))
    if index % 4 == 3:
        return Image.fromarray((255 * digits()[0][index].reshape(28, 28)).astype(np.uint8)).convert("RGB")
    return image


def with_pictures(n, m, rng, shown=picture, copied=1, rows=None):
    """Return sets of pictures; `copied` times each, turned and cut in ways of their own, as groups; n and m of both."""
    rows = photographs()[0] if rows is None else rows
    order = rng.permutation(len(pictures()))[: (n + m) // copied]
    sets, options = [], {"groups": "group"} if copied > 1 else {}
    for part in (order[: n // copied], order[n // copied :]):
        own = np.repeat(part, copied)
        images = [shown(index) for index in own]
        if copied > 1:
            corners = rng.integers(0, 9, (len(own), 2)).tolist()
            images = [one.crop((x, y, x + 56, y + 56)) for one, (x, y) in zip(images, corners, strict=True)]
        metadata = {"group": [str(one) for one in own]} if copied > 1 else None
        sets.append(fe.EmbeddingSet(rows[own], images=images, metadata=metadata))
    return sets, options


def prompted_pictures(count, each, rng):
    """Return sets of pictures by prompt: cuts of one photograph of each prompt."""
    order = rng.permutation(len(pictures()))[:count]
    sets = []
    for n in each:
        own = np.repeat(order, n)
        corners = rng.integers(0, 17, (len(own), 2)).tolist()
        images = [picture(i).crop((x, y, x + 48, y + 48)) for i, (x, y) in zip(own, corners, strict=True)]
        metadata = {"prompt": [str(one) for one in own]}
        sets.append(
            fe.EmbeddingSet(rng.normal(size=(len(own), 4)).astype(np.float32), images=images, metadata=metadata)
        )
    return sets, {"pairs": "prompt"}


def sketches(law, n, m, rng):
    (gen, ref), _ = plain(law, n, m, rng)
    reference = fe.Sketch.reference(ref, features=FEATURES)
    return [fe.Sketch.of(rows, reference.feature_map) for rows in (gen, ref)], {}


DIGITS = partial(real, digits)
WHOLE = {
    "photographs-100-100": partial(with_pictures, 100, 100),
    "photographs-60-300": partial(with_pictures, 60, 300),
    "mixed-100-100": partial(with_pictures, 100, 100, shown=source_of),
    "tight-60-60": partial(plain, TIGHT, 60, 60),
    "tight-400-100": partial(plain, TIGHT, 400, 100),
    "t2-200-200": partial(plain, partial(heavy_tails, 16, 2), 200, 200),
    "digits-200-200": partial(plain, DIGITS, 200, 200),
    "groups-60x4-60x4": partial(groups, ((60, 4), (60, 4))),
    "groups-100x3-40x8": partial(groups, ((100, 3), (40, 8))),
    "prompts-60x4": partial(prompts, 60, (4, 4)),
    "sketches-200-200": partial(sketches, TIGHT, 200, 200),
}
GAUSS = partial(clusters, 20, 64)
SETS = {
    **{f"clusters-{n}-{m}": partial(plain, GAUSS, n, m) for n, m in ((20, 20), (60, 60), (200, 200), (1000, 100))},
    "clusters-300-8000": partial(plain, GAUSS, 300, 8000),
    "wide-200-200": partial(plain, wide, 200, 200),
    "cauchy-200-200": partial(plain, partial(heavy_tails, 16, 1), 200, 200),
    "cauchy-60-600": partial(plain, partial(heavy_tails, 16, 1), 60, 600),
    "zipf-400-400": partial(plain, zipf_points, 400, 400),
    "groups-60x4-60x4": partial(groups, ((60, 4), (60, 4))),
    "groups-100x3-40x8": partial(groups, ((100, 3), (40, 8))),
    "groups-40x3-100x8": partial(groups, ((40, 3), (100, 8))),
    "groups-40x1-300x8": partial(groups, ((40, 1), (300, 8))),
    "groups-40xgeometric-60x3": partial(groups, ((40, 6.0), (60, 3))),
    "prompts-100x1": partial(prompts, 100, (1, 1)),
    "prompts-25x4": partial(prompts, 25, (4, 4)),
    "prompts-60x4-60x1": partial(prompts, 60, (4, 1)),
    "digits-300-300": partial(plain, DIGITS, 300, 300),
    "clips-300-100": partial(plain, clips, 300, 100),
    "binary-100-300": partial(plain, binary, 100, 300),
    "sparse-300-300": partial(plain, sparse, 300, 300),
    "narrow-200-60": partial(plain, narrow, 200, 60),
    "sketches-60-60": partial(sketches, GAUSS, 60, 60),
}
NO_ROWS = np.zeros((7200, 4), np.float32)
PICTURES = partial(with_pictures, rows=NO_ROWS)
LOOKS = {
    **{f"photographs-{n}-{m}": partial(PICTURES, n, m) for n, m in ((30, 30), (60, 300), (100, 100), (300, 60))},
    "photographs-300-300": partial(PICTURES, 300, 300),
    "photographs-600-600": partial(PICTURES, 600, 600),
    "mixed-60-60": partial(PICTURES, 60, 60, shown=source_of),
    "mixed-200-50": partial(PICTURES, 200, 50, shown=source_of),
    "mixed-300-300": partial(PICTURES, 300, 300, shown=source_of),
    "groups-30x4-30x4": partial(PICTURES, 120, 120, copied=4),
    "groups-100x3-30x3": partial(PICTURES, 300, 90, copied=3),
    "prompts-40x4": partial(prompted_pictures, 40, (4, 4)),
    "prompts-100x1": partial(prompted_pictures, 100, (1, 1)),
    "prompts-60x3-60x1": partial(prompted_pictures, 60, (3, 1)),
}


def of_rows(sets, seed):
    """Return the settings that sketches have already."""
    return {} if isinstance(sets[0], fe.Sketch) else {"features": FEATURES, "seed": seed}


def whole(regime, seed):
    """Return the smallest p-values of a comparison of two sets of one law, and what its headline says."""
    sets, options = WHOLE[regime](np.random.default_rng(seed))
    found = fe.compare(*sets, **options, **of_rows(sets, seed))
    words = found.prompts.words if found.prompts else ()
    return {
        "sets": found.sets_p_value,
        "looks": min((one.p_value for one in found.looks), default=1.0),
        "kinds": min((one.p_value for one in found.kinds), default=1.0),
        "words": min((one.p_value for one in words), default=1.0),
        "difference": found.difference_p_value,
        "headline": found.headline,
    }


def sets_alone(regime, seed):
    """Return the p-value of the test of the sets, without the rest of a comparison."""
    sets, options = SETS[regime](np.random.default_rng(seed))
    opened = sketch_sets(
        dict(zip(("gen", "ref"), sets, strict=True)), Settings(**options, **of_rows(sets, seed)), Run()
    )
    held = {label: one.at_hand for label, one in opened.sets.items()}
    alone = sets_p_values(held, seed, Run()) if opened.pairing is None else {"gen": None}
    return {"sets": p_of(opened, seed), "of kinds": alone["gen"], "of releases": p_of_laws(opened)}


def p_of(opened, seed):
    units = {label: found for label in opened.sets if (found := unit_features(opened, label)) is not None}
    score_sets(opened.sets, [], units, Run())
    return sets_p_value(opened, {label: one.result() for label, one in units.items()}, seed)


def p_of_laws(opened):
    """Return the p-value without samples, as of two releases; None for paired sets and sketches."""
    units = {label: found for label in opened.sets if (found := unit_features(opened, label)) is not None}
    if opened.pairing is not None or len(units) != 2:
        return None
    score_sets(opened.sets, [], units, Run())
    gen, ref = (MeanLaw.of(units[label].result()) for label in ("gen", "ref"))
    return gen.p_value(ref)


@cache
def traits(content):
    size, pixels = content
    values, residuals = MEASURE([Image.frombytes("RGB", size, pixels)])
    return values[0], residuals[0]


def measure_once(images):
    """Measure pictures; a picture that many draws share is measured once."""
    found = [traits((image.size, image.convert("RGB").tobytes())) for image in images]
    return np.stack([values for values, _ in found]), np.stack([residuals for _, residuals in found])


MEASURE = measured.measure_looks


def looks_alone(regime, seed):
    """Return the smallest p-value of the looks."""
    measured.measure_looks = measure_once
    sets, options = LOOKS[regime](np.random.default_rng(seed))
    opened = sketch_sets(
        dict(zip(("gen", "ref"), sets, strict=True)), Settings(**options, features=8, sigma=1.0, seed=seed), Run()
    )
    held = {label: one.at_hand for label, one in opened.sets.items()}
    found = find_looks(held, seed, None if opened.pairing is None else opened.pairing.block)
    return {"looks": min((one.p_value for one in found), default=1.0), "names": [one.name for one in found]}


@cache
def motion_of_digits(speed, clips=200):
    """Return the motion of clips in which a digit crosses gray noise: 33 frames, .5 to 1.5 px a frame times speed."""
    rng = np.random.default_rng(int(100 * speed))
    x, _ = digits()
    shown = np.empty((clips, 33, 64, 64, 3), np.uint8)
    for clip in shown:
        start, angle, each = rng.uniform(0, 36, 2), rng.uniform(0, 2 * np.pi), speed * rng.uniform(0.5, 1.5)
        ground, digit = rng.integers(0, 60, (64, 64)), 255 * x[rng.integers(len(x))].reshape(28, 28)
        for number, frame in enumerate(clip):
            at = start + number * each * np.array([np.sin(angle), np.cos(angle)])
            top, left = (36 - abs(at % 72 - 36)).astype(int)  # the digit returns at the border
            frame[:] = ground[..., None]
            place = frame[top : top + 28, left : left + 28]
            np.maximum(place, digit[..., None].astype(np.uint8), out=place)
    with fe.extract(shown, "motion") as found:
        return found[:]


def moved(rng, share, n=60):
    """Return the motion of n clips, a share of them twice as fast, and of n other clips."""
    slow, fast = motion_of_digits(1.0), motion_of_digits(2.0)
    own, order = round(share * n), rng.permutation(len(slow))
    return np.concatenate([fast[rng.permutation(len(fast))[:own]], slow[order[n : 2 * n - own]]]), slow[order[:n]]


def half_pixel(images):
    return (images + np.roll(images, 1, 2)) / 2


def softened(images):
    from scipy.ndimage import gaussian_filter

    return gaussian_filter(images, (0, 0.5, 0.5))


CHANGES = {
    "digits: half-pixel shift": lambda x, rng: half_pixel(x.reshape(-1, 28, 28)).reshape(len(x), -1),
    "digits: contrast −10 %": lambda x, rng: 0.9 * x,
    "digits: noise .1": lambda x, rng: x + 0.1 * rng.normal(size=x.shape),
    "digits: blur .5 px": lambda x, rng: softened(x.reshape(-1, 28, 28)).reshape(len(x), -1),
    "digits: brighter .05": lambda x, rng: np.clip(x + 0.05, 0, 1),
    "clips: drift .1 sd": lambda x, rng: x + 0.1 * x.std(0) * rng.choice([-1, 1], x.shape[1]),
    "clips: dimmed 5 %": lambda x, rng: 0.95 * x,
    "clips: shrunk to the mean 5 %": lambda x, rng: x.mean(0) + 0.95 * (x - x.mean(0)),
    "clips: noise .5 sd": lambda x, rng: x + 0.5 * x.std(0) * rng.normal(size=x.shape),
    "moving digits: twice as fast": None,
    "moving digits: a quarter twice as fast": None,
    "digits: no change": lambda x, rng: x,
    "clips: no change": lambda x, rng: x,
}


def power(regime, seed):
    """Return whether a change of every generated sample is found by the test of the sets, and by MMD."""
    rng = np.random.default_rng(seed)
    if regime.startswith("moving"):
        gen, ref = moved(rng, 0.25 if "quarter" in regime else 1.0)
        opened = sketch_sets({"gen": gen, "ref": ref}, Settings(features=512, seed=seed), Run())
        return {"sets": p_of(opened, seed) <= ALPHA, "mmd": mmd(gen, ref, rng) <= ALPHA}
    law = DIGITS if regime.startswith("digits") else clips
    gen, ref = (part.rows for part in same_law(law()(rng), rng, 500, 500))
    gen = CHANGES[regime](gen, rng).astype(np.float32)
    opened = sketch_sets({"gen": gen, "ref": ref}, Settings(features=512, seed=seed), Run())
    return {"sets": p_of(opened, seed) <= ALPHA, "mmd": mmd(gen, ref, rng) <= ALPHA}


def mmd(gen, ref, rng, permutations=199):
    """Return the p-value of the MMD of a Gaussian kernel whose bandwidth is the median distance."""
    rows = np.concatenate([gen, ref]).astype(np.float64)
    squares = (rows**2).sum(1)
    distances = np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0)
    kernel = np.exp(-distances / (2 * np.median(distances[np.triu_indices(len(rows), 1)])))
    signs = np.where(np.arange(len(rows)) < len(gen), 1 / len(gen), -1 / len(ref))
    columns = np.stack([signs, *(rng.permutation(signs) for _ in range(permutations))], 1)
    found = (columns * (kernel @ columns)).sum(0)
    return float((found >= found[0] - 1e-12).mean())


def below(runs, key, level):
    """Return how many runs have a p-value up to a level."""
    return rate([{key: None if one.get(key) is None else one[key] <= level} for one in runs], key)


def claims(one):
    """Return whether the headline of a run claims anything: see `finc_eval.comparison.headline`."""
    beside = [one[key] for key in ("sets", "looks", "words") if one[key] is not None]
    return one["kinds"] <= ALPHA or min(beside) <= BESIDE_ALPHA


def report_whole(found):
    rows = [
        {
            "regime": regime,
            "the sets": below(runs, "sets", BESIDE_ALPHA),
            "a look": below(runs, "looks", BESIDE_ALPHA),
            "kinds": below(runs, "kinds", ALPHA),
            "the headline": rate([{"claims": claims(one)} for one in runs], "claims"),
        }
        for regime, runs in found.items()
    ]
    record("first_sentence", rows, f"runs that claim a difference, with 95 % intervals; r = {FEATURES}", total=sum_up)


def report_alone(key, levels, others=()):
    """Return the report of a test alone; the p-values of looks are known up to their level. Others are at one level."""

    def report(found):
        rows = [
            {
                "regime": regime,
                **{f"p ≤ {level:g}": below(runs, key, level) for level in levels},
                **{other: below(runs, other, BESIDE_ALPHA) for other in others},
            }
            for regime, runs in found.items()
        ]
        record(
            f"first_sentence_{key}",
            rows,
            f"runs of equal sets by the p-value of this test; r = {FEATURES}",
            total=sum_up,
        )

    return report


def sum_up(rows):
    """Return the row of all regimes, from counts such as "2/170 [0.001, 0.042]"."""
    cells = {
        column: [re.match(r"(\d+)/(\d+)", row[column]) for row in rows]
        for column in list(rows[0])
        if column not in ("regime", "measured")
    }
    sums = {
        column: [sum(int(one[place]) for one in found if one) for place in (1, 2)] for column, found in cells.items()
    }
    return {"regime": "all", **{column: counted(*both) for column, both in sums.items()}}


def report_power(found):
    rows = [{"change": name, "the sets": rate(runs, "sets"), "MMD": rate(runs, "mmd")} for name, runs in found.items()]
    record("first_sentence_power", rows, "runs with p ≤ .05, 500 against 500")


OTHERS = ("of kinds", "of releases")  # with p ≤ .0125
PARTS = {
    "whole": ("first_sentence", WHOLE, whole, report_whole, RUNS),
    "sets": ("first_sentence_sets", SETS, sets_alone, report_alone("sets", (ALPHA, BESIDE_ALPHA), OTHERS), CHEAP),
    "looks": ("first_sentence_looks", LOOKS, looks_alone, report_alone("looks", (BESIDE_ALPHA,)), CHEAP),
    "power": ("first_sentence_power", CHANGES, power, report_power, 40),
}

if __name__ == "__main__":
    part = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1] in PARTS else "whole"
    run(*PARTS[part])
