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
}


def table_of(rows, of, prompts, scores=None):
    """Return the table of two sets, from the images (n, d) and the prompts (n,) of each, which `of` has by number.

    Images of few entries are their own coordinates on the axes of the kinds.
    """
    dim = rows["gen"].shape[1]
    sets = {
        label: fe.EmbeddingSet(
            rows[label].astype(np.float32), metadata={"prompt": [prompts[one] for one in of[label].tolist()]}
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


FITS, FIT = ("ModelFit.interval", "Fit.interval", "Fit.p_value"), ("Fit.interval", "Fit.p_value")

DESIGNS = (
    Design("fits of 40 prompts", "paired", FITS, partial(fits_of_sets, prompts=40, images=(4,)), 600, 60),
    Design("fits of 8 prompts", "small", FITS, partial(fits_of_sets, prompts=8, images=(2,)), 600, 0),
    Design(
        "fits of prompts of one to six images, a gap",
        "clustered",
        FITS,
        partial(fits_of_sets, prompts=60, images=(1, 2, 6), gap=0.1),
        600,
        60,
    ),
    Design(
        "fits of 100 prompts, of which some fail",
        "rare",
        FITS,
        partial(fits_of_sets, prompts=100, images=(2,), failed=0.05),
        400,
        0,
    ),
    Design("fits of each of ten prompts", "small", FIT, partial(fits_of_prompts, prompts=10, images=(4, 4)), 200, 16),
    Design(
        "fits of each of ten prompts, a gap",
        "large",
        FIT,
        partial(fits_of_prompts, prompts=10, images=(16, 16), gap=0.2),
        100,
        8,
    ),
    Design(
        "fits of three images against twelve, which vary less",
        "clustered",
        ("Fit.interval",),
        partial(fits_of_prompts, prompts=10, images=(3, 12), spreads=(0.2, 0.1)),
        200,
        12,
    ),
)
