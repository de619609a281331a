"""Measure how often a comparison claims a difference between two sets of one law.

    python benchmarks/first_sentence.py [whole | local | sets | looks | power] [--regime … --runs … --jobs …]

*whole*: whole comparisons; anything is whatever their headline claims. *local*: whole comparisons of embedded pictures
with their cells, as of two folders (see `_pool.py`). *sets* and *looks*: these tests alone, which are cheap. *sets* is
also measured as `kinds`, boards and gates take it, and as two releases without samples do. *power*: slight changes of
every sample, 500 against 500, and 60 clips against 60, where all or a quarter are twice as fast; found by the test of
the sets, and by the MMD of a Gaussian kernel with the median distance and 199 permutations.

Every regime draws two sets of one law, n against m. *photographs*: disjoint random parts of real photographs, with
their pictures, in features of EfficientNet-Lite0; *skewed*: of classes by Zipf's law; *mixed*: of photographs, gray
ones, small ones and drawn digits.
*prompts*: B × k pairs, whose samples resemble each other; *groups*: G groups of s samples that are alike, twice;
*sketches*: the moments alone. *t2*, *cauchy*, *binary*, *sparse* and *narrow*: independent t variables, signs, mostly
zeros, and one axis with most of the variance. *zipf*: repeats of 300 points by Zipf's law.
"""

import re
import sys
from functools import cache

import numpy as np
from _designs import digits, same_law
from _pool import LOCAL
from _record import record
from _regimes import DIGITS, FEATURES, LOOKS, SETS, WHOLE, clips
from _runs import counted, rate, run
from PIL import Image

import finc_eval as fe
from finc_eval.comparison.inputs import sketch_sets
from finc_eval.comparison.score_pass import score_sets
from finc_eval.comparison.sets_test import sets_p_value, unit_features
from finc_eval.comparison.settings import Settings
from finc_eval.core.run import Run
from finc_eval.embeddings.stored import turned
from finc_eval.findings import visible
from finc_eval.naming import measured
from finc_eval.naming.looks import find_looks
from finc_eval.numerics.exchanges import MeanLaw
from finc_eval.numerics.inference import ALPHA, BESIDE_ALPHA
from finc_eval.sketches.one_law import sets_p_values

RUNS, CHEAP = 400, 200
NOTHING = ("The sets do not differ", "No kind", "No direction")  # how headlines begin that claim nothing


def of_rows(sets, seed):
    """Return the settings that sketches have already."""
    return {} if isinstance(sets[0], fe.Sketch) else {"features": FEATURES, "seed": seed}


def whole(regime, seed):
    """Return the smallest p-values of a comparison of two sets of one law, and what its headline says."""
    measured.measure_looks = measure_once
    sets, options = WHOLE[regime](np.random.default_rng(seed))
    return claimed(fe.compare(*sets, **options, **of_rows(sets, seed)))


def local_too(regime, seed):
    """Return what `whole` does, of two sets of embedded pictures."""
    remember_pictures()
    sets, options = LOCAL[regime](np.random.default_rng(seed))
    return claimed(fe.compare(*sets, **options, **of_rows(sets, seed)))


def claimed(found):
    """Return the smallest p-values of a comparison, and its headline."""
    words = found.prompts.words if found.prompts else ()
    return {
        "sets": found.sets_p_value,
        "local": found.local_p_value,
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


@cache
def likeness(content):
    size, pixels = content
    return LIKENESS(Image.frombytes("RGB", size, pixels))


def likeness_once(image):
    return likeness((image.size, image.convert("RGB").tobytes()))


TURNED = {}  # embeddings of pictures upside down, by their size and pixels


def turned_once(turner, images):
    """Embed pictures upside down; a picture that many draws share is embedded once."""
    keys = [(image.size, image.convert("RGB").tobytes()) for image in images]
    if new := {key: image for key, image in zip(keys, images, strict=True) if key not in TURNED}:
        TURNED.update(zip(new, EMBED(turner, [*new.values()]), strict=True))
    return np.stack([TURNED[key] for key in keys])


def remember_pictures():
    """Let looks and likeness of a picture be measured once, and a picture be embedded upside down once."""
    measured.measure_looks = visible.measure_looks = measure_once
    measured.measure_likeness = likeness_once
    turned.Turner._embed = turned_once


MEASURE, LIKENESS, EMBED = measured.measure_looks, measured.measure_likeness, turned.Turner._embed


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
    beside = [one[key] for key in ("sets", "local", "looks", "words") if one.get(key) is not None]
    return one["kinds"] <= ALPHA or min(beside) <= BESIDE_ALPHA or not one["headline"].startswith(NOTHING)


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


def report_local(found):
    rows = [
        {
            "regime": regime,
            "local p ≤ .05": below(runs, "local", ALPHA),
            "local": below(runs, "local", BESIDE_ALPHA),
            "the sets": below(runs, "sets", BESIDE_ALPHA),
            "a look": below(runs, "looks", BESIDE_ALPHA),
            "kinds": below(runs, "kinds", ALPHA),
            "the headline": rate([{"claims": not one["headline"].startswith(NOTHING)} for one in runs], "claims"),
        }
        for regime, runs in found.items()
    ]
    record("first_sentence_local", rows, "runs that claim a difference, with 95 % intervals", total=sum_up)


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
    "local": ("first_sentence_local", LOCAL, local_too, report_local, CHEAP),
    "sets": ("first_sentence_sets", SETS, sets_alone, report_alone("sets", (ALPHA, BESIDE_ALPHA), OTHERS), CHEAP),
    "looks": ("first_sentence_looks", LOOKS, looks_alone, report_alone("looks", (BESIDE_ALPHA,)), CHEAP),
    "power": ("first_sentence_power", CHANGES, power, report_power, 40),
}

if __name__ == "__main__":
    part = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1] in PARTS else "whole"
    run(*PARTS[part])
