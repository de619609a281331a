"""Designs of images of prompts: fits of models, of prompts and of words, and differences of prompts and words."""

from functools import partial

import numpy as np
import torch
from _law import Design, Drawn, Holds, PValue

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.numerics.eigen import PrincipalAxes
from finc_eval.partitions.blocks import pair
from finc_eval.partitions.kind_tree import KindTree, Tree
from finc_eval.prompts.images import images_of, unit_of
from finc_eval.prompts.table import _Table
from finc_eval.prompts.words import Phrases

PROMISES = {
    "ModelFit.interval": Holds(),
    "Fit.interval": Holds(width=(0.8, 2.0), why="of a prompt, as wide as a few images of each set allow"),
    "Fit.p_value": PValue(),
    "Prompt.interval": Holds(width=(0.8, 2.5), why="as wide as a few images of each set allow"),
    "Prompt.p_value": PValue(),
    "Word.interval": Holds(),
    "Word.p_value": PValue(),
    "PromptCell.p_value": PValue(),
    "PromptSetGap.interval": Holds(),
    "PromptSetGap.p_value": PValue(),
}


def table_of(rows, of, prompts, scores=None, columns=None):
    """Return the table of two sets, from the images (n, d) and the prompts (n,) of each, which `of` has by number.

    Images of few entries are their own coordinates on the axes of the kinds.
    """
    dim = rows["gen"].shape[1]
    sets = {
        label: fe.EmbeddingSet(
            rows[label].astype(np.float32),
            metadata={"prompt": [prompts[one] for one in of[label].tolist()], **(columns or {}).get(label, {})},
        )
        for label in rows
    }
    pairing, _ = pair(sets, "prompt")
    axes = PrincipalAxes(torch.zeros(dim), torch.eye(dim), 1.0)
    tree = Tree(np.empty((0, 2), np.int64), np.empty(0))
    kinds = KindTree(axes, torch.zeros(1, dim), np.zeros(1, np.int64), tree, np.inf, 0)
    images, names = images_of(pairing, kinds, Run()), [str(one) for one in pairing.names]
    return _Table(names, images, scores or {}, unit_of(images.values()), pairing, kinds, Phrases.of(names), 0)


def numbers_of(prompts):
    return [f"p{one}" for one in range(prompts)]


def fits_of_sets(rng, prompts, images, gap=0.0, failed=0.0, own=0.1):
    """Fits of the images of prompts, which differ by prompt; prompts with more images fit better, or some fail."""
    of, scores = {}, {}
    quality = rng.normal(0, own, prompts)
    for label, shift in (("gen", gap), ("ref", 0.0)):
        sizes = rng.choice(images, prompts)
        mean = 1.0 + quality + 0.02 * sizes + shift * rng.gamma(2.0, 0.5, prompts)
        mean = np.where(rng.random(prompts) < failed, mean - 0.5, mean)
        of[label] = np.arange(prompts).repeat(sizes)
        scores[label] = mean[of[label]] + rng.normal(0, 0.1, len(of[label]))
    table = table_of(
        {label: rng.normal(size=(len(one), 1)) for label, one in of.items()}, of, numbers_of(prompts), scores
    )
    n = np.array(images, float)
    models = table.model_fits()
    for label, shift in (("gen", gap), ("ref", 0.0)):
        truth = (n * (1.0 + 0.02 * n + shift - 0.5 * failed)).mean() / n.mean()
        yield Drawn("ModelFit.interval", models[label].value, models[label].interval, float(truth))
    found = table.fit_of_sets()
    yield Drawn("Fit.interval", found.difference, found.interval, gap, of="sets")
    yield Drawn("Fit.p_value", found.p_value, is_null=gap == 0, of="sets")


def fits_of_prompts(rng, prompts, images, spreads=(0.1, 0.1), gap=0.0):
    """Fits of each prompt, whose images vary more in one set; each prompt is judged by itself."""
    of, scores = {}, {}
    for label, count, spread, shift in zip(("gen", "ref"), images, spreads, (gap, 0.0), strict=True):
        of[label] = np.arange(prompts).repeat(count)
        scores[label] = 1.0 + shift + spread * rng.normal(size=len(of[label]))
    table = table_of(
        {label: rng.normal(size=(len(one), 1)) for label, one in of.items()}, of, numbers_of(prompts), scores
    )
    found = [one.fit for one in table.differing_prompts()]
    for one in found:
        yield Drawn("Fit.interval", one.difference, one.interval, gap, of="prompts")
    if spreads[0] == spreads[1]:
        yield Drawn("Fit.p_value", min(one.p_value for one in found), is_null=gap == 0, of="prompts")


def images_of_prompts(rng, prompts, images, dim, apart, differing=None):
    """Images of prompts that differ in content; of some prompts, the sets differ by a distance."""
    count = prompts if differing is None else differing
    middle, spread = rng.normal(0, 2, (prompts, dim)), 1 / np.sqrt(1 + np.arange(dim))
    rows, of = {}, {}
    for label, each, shift in zip(("gen", "ref"), images, (apart, 0.0), strict=True):
        of[label] = np.arange(prompts).repeat(each)
        own = middle + shift * (np.arange(prompts) < count)[:, None] / np.sqrt(dim)
        rows[label] = own[of[label]] + spread * rng.normal(size=(len(of[label]), dim))
    table = table_of(rows, of, numbers_of(prompts))
    found = {one.text: one for one in table.differing_prompts()}
    if apart:
        for number in range(count):
            one = found[f"p{number}"]
            yield Drawn("Prompt.interval", one.difference, one.interval, apart / table.unit)
    p_values = [one.p_value for one in found.values()]
    yield Drawn("Prompt.p_value", min(p_values), is_null=apart == 0)


COLORS, THINGS = ("red", "green", "blue"), ("cat", "dog")
WORDS = [f"{color} {thing} {number}" for color in COLORS for thing in THINGS for number in "pqrs"]


def words_of_prompts(rng, images, dim=4, content=0.0, narrower=1.0, gap=0.0):
    """Images of prompts of words; images of a word differ in content, are more alike, or fit less."""
    is_red = np.array(["red" in one for one in WORDS])
    middle, rows, of, scores = rng.normal(0, 1, (len(WORDS), dim)), {}, {}, {}
    fits = rng.normal(1, 0.1, len(WORDS))
    for label, each in zip(("gen", "ref"), images, strict=True):
        of[label], own = np.arange(len(WORDS)).repeat(each), is_red * (label == "gen")
        shift = own * rng.normal(1, 0.2, len(WORDS))
        scale = 1 - (1 - narrower) * own
        rows[label] = (middle + content * shift[:, None] / np.sqrt(dim))[of[label]]
        rows[label] += scale[of[label], None] * rng.normal(0, 0.5, (len(of[label]), dim))
        scores[label] = (fits - gap * shift)[of[label]] + rng.normal(0, 0.05, len(of[label]))
    table = table_of(rows, of, WORDS, scores)
    truths = {"content": content / table.unit, "diversity": narrower - 1, "fit": -gap}
    words = [one for one in table.words() if one.text == "red" or not any(truths.values())]
    for one in words:
        if truths[one.what]:
            truth = truths[one.what] if narrower == 1 else None
            yield Drawn("Word.interval", one.difference, one.interval, truth, of=one.what)
    is_null = not any(truths.values())
    yield Drawn("Word.p_value", min((one.p_value for one in words), default=1.0), is_null=is_null)


def cells_of_words(rng, images, columns, gap=0.0):
    """Values of columns beside images of prompts, some of which come with words; of one word, one set has more."""
    is_red, of, rows, values = np.array(["red" in one for one in WORDS]), {}, {}, {}
    usual = rng.uniform(0.05, 0.5, (columns, len(WORDS)))
    for label, each in zip(("gen", "ref"), images, strict=True):
        of[label] = np.arange(len(WORDS)).repeat(each)
        rows[label] = rng.normal(size=(len(of[label]), 2))
        chance = usual[:, of[label]] + gap * (label == "gen") * is_red[of[label]]
        has = rng.random(chance.shape) < chance
        values[label] = {f"column{n}": np.where(own, "yes", "no").tolist() for n, own in enumerate(has)}
    cells = table_of(rows, of, WORDS, columns=values).cells(((), {}), Run()).found
    yield Drawn("PromptCell.p_value", min((one.p_value for one in cells), default=1.0), is_null=gap == 0)


def gaps_of_prompt_sets(rng, prompts, images, factor=1.0, own=0.1):
    """Images of old and of fresh prompts; on old ones, the sets are nearer by a factor, and fit them better."""
    is_old = np.arange(sum(prompts)) < prompts[0]
    each, names = np.where(is_old, *images), numbers_of(sum(prompts))
    off = rng.normal(size=(len(names), 4)) * np.where(is_old, factor, 1.0)[:, None]
    of = {label: np.arange(len(names)).repeat(each) for label in ("gen", "ref")}
    middle, rows, scores = 3 * rng.normal(size=(len(names), 4)), {}, {}
    for label, shift in (("gen", off), ("ref", 0 * off)):
        rows[label] = (middle + shift)[of[label]] + rng.normal(size=(len(of[label]), 4))
        better = np.where(is_old & (label == "gen"), 1 - factor, 0.0) + rng.normal(1, own, len(names))
        scores[label] = better[of[label]] + rng.normal(0, 0.1, len(of[label]))
    columns = {"gen": {"fresh": np.where(is_old, "no", "yes")[of["gen"]].tolist()}}
    table = table_of(rows, of, names, scores, columns)
    truths = {"content": 4 * (1 - factor**2) / table.unit**2, "fit": factor - 1}
    gaps, _ = table.prompt_sets()
    for gap in gaps:
        yield Drawn("PromptSetGap.interval", gap.difference, gap.interval, truths[gap.what], of=gap.what)
    yield Drawn("PromptSetGap.p_value", min(gap.p_value for gap in gaps), is_null=factor == 1)


FITS, FIT = ("ModelFit.interval", "Fit.interval", "Fit.p_value"), ("Fit.interval", "Fit.p_value")

CELL = ("PromptCell.p_value",)

GAP = ("PromptSetGap.interval", "PromptSetGap.p_value")

PROMPT, WORD = ("Prompt.interval", "Prompt.p_value"), ("Word.interval", "Word.p_value")

SOME, MANY = {"prompts": 12, "images": (4, 4), "dim": 8}, {"prompts": 6, "images": (16, 16), "dim": 32}
UNEVEN, SINGLE = {"prompts": 6, "images": (3, 12), "dim": 2}, {"prompts": 30, "images": (8, 8), "dim": 4}


def _images(name, regime, runs, quick, numbers=PROMPT, **options):
    return Design(name, regime, numbers, partial(images_of_prompts, **options), runs, quick)


def _words(name, regime, runs, quick, numbers=WORD, **options):
    return Design(name, regime, numbers, partial(words_of_prompts, **options), runs, quick)


DESIGNS = (
    _images("images of prompts, 4 against 4", "small", 200, 8, **SOME, apart=1.5),
    _images("images of prompts on 32 axes, 16 against 16", "large", 200, 6, **MANY, apart=1.5),
    _images("images of prompts, 3 against 12", "clustered", 200, 0, **UNEVEN, apart=2.5),
    _images("images of prompts, of which a single one differs", "rare", 100, 0, **SINGLE, apart=2.0, differing=1),
    _images("images of prompts, and none differs", "paired", 300, 6, PROMPT[1:], **SOME, apart=0.0),
    _words("a word of other content that fits less", "clustered", 150, 6, images=(4, 4), content=2.0, gap=0.2),
    _words("a word of images that are more alike", "paired", 150, 0, images=(4, 4), narrower=0.4),
    _words("words of no difference", "large", 200, 6, WORD[1:], images=(3, 3)),
    Design(
        "columns of pictures of equal law, 4 against 4",
        "paired",
        CELL,
        partial(cells_of_words, images=(4, 4), columns=6),
        300,
        6,
    ),
    Design(
        "columns of pictures, 2 against 6",
        "clustered",
        CELL,
        partial(cells_of_words, images=(2, 6), columns=12),
        300,
        0,
    ),
    Design(
        "columns of pictures, of which a word has more",
        "rare",
        CELL,
        partial(cells_of_words, images=(6, 6), columns=4, gap=0.5),
        100,
        4,
    ),
    Design(
        "sets of prompts of one law, 20 + 30",
        "paired",
        GAP,
        partial(gaps_of_prompt_sets, prompts=(20, 30), images=(4, 4)),
        300,
        6,
    ),
    Design(
        "sets of prompts of one law, with 2 and with 8 images",
        "clustered",
        GAP,
        partial(gaps_of_prompt_sets, prompts=(40, 15), images=(2, 8)),
        300,
        0,
    ),
    Design(
        "sets of prompts, of which one is fitted",
        "large",
        GAP,
        partial(gaps_of_prompt_sets, prompts=(40, 40), images=(4, 4), factor=0.5),
        200,
        4,
    ),
    Design("fits of 40 prompts", "paired", FITS, partial(fits_of_sets, prompts=40, images=(4,)), 600, 20),
    Design("fits of 8 prompts", "small", FITS, partial(fits_of_sets, prompts=8, images=(2,)), 600, 0),
    Design(
        "fits of prompts of one to six images, a gap",
        "clustered",
        FITS,
        partial(fits_of_sets, prompts=60, images=(1, 2, 6), gap=0.1),
        600,
        15,
    ),
    Design(
        "fits of 100 prompts, of which some fail",
        "rare",
        FITS,
        partial(fits_of_sets, prompts=100, images=(2,), failed=0.05),
        400,
        0,
    ),
    Design("fits of each of ten prompts", "small", FIT, partial(fits_of_prompts, prompts=10, images=(4, 4)), 200, 8),
    Design(
        "fits of each of ten prompts, a gap",
        "large",
        FIT,
        partial(fits_of_prompts, prompts=10, images=(16, 16), gap=0.2),
        100,
        0,
    ),
    Design(
        "fits of three images against twelve, which vary less",
        "clustered",
        ("Fit.interval",),
        partial(fits_of_prompts, prompts=10, images=(3, 12), spreads=(0.2, 0.1)),
        200,
        4,
    ),
)
