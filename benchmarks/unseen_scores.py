"""Fig. 8 of FINC's paper on digits: eight images that no fit has seen, with their scores on two modes.

The reference lacks 1 and 6. The two modes are the first ones whose 20 best samples are mostly of either. AUC: of the
size of the score, for images of that kind among 2 000 unseen ones. Writes results/unseen_scores.svg, too.
"""

from pathlib import Path

import numpy as np
import torch
from _real import mnist
from _record import record

import finc_eval as fe

NOVEL, SAMPLES, SHOWN, BEST = (1, 6), 2000, (1, 1, 6, 6, 0, 4, 7, 8), 20
FIGURE = Path(__file__).parent / "results" / "unseen_scores.svg"


def kind_of(mode, known):
    """Return the class of most of a mode's best samples."""
    return int(np.bincount(known[[int(name) for name in mode.typical("gen")[:BEST]]]).argmax())


def auc(score, chosen):
    """Return the share of pairs, one of those chosen and one other, that the score orders rightly."""
    ranks = score.argsort().argsort() + 1
    count = chosen.sum()
    return (ranks[chosen].sum() - count * (count + 1) / 2) / (count * (~chosen).sum())


def draw(images, scores, kinds):
    """Draw the images above bars of their scores, as SVG."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", {"svg.fonttype": "none", "svg.hashsalt": "finc-eval"}]):
        figure = Figure(figsize=(9, 2.4), layout="constrained")
        above, below = figure.subplots(2, len(images))
        for picture, bars, image, both in zip(above, below, images, scores, strict=True):
            picture.imshow(image.reshape(28, 28), cmap="gray_r")
            picture.axis("off")
            bars.bar([f"mode of {kind}" for kind in kinds], both, color=["#1d4ed8", "#c2410c"])
            bars.set_ylim(0, scores.max())
            bars.tick_params(axis="x", labelrotation=90)
            bars.set_yticks([])
        figure.savefig(FIGURE, metadata={"Date": None, "Creator": None})


def main():
    torch.set_num_threads(1)
    found = mnist()
    if found is None:
        return
    x, labels = found
    order = np.random.default_rng(0).permutation(len(x))
    gen, ref, fresh = (order[start : start + SAMPLES] for start in (0, SAMPLES, 2 * SAMPLES))
    ref = ref[~np.isin(labels[ref], NOVEL)]
    comparison = fe.compare(x[gen], x[ref], features=1000, method=fe.Finc(clusters=False))
    over = [mode for mode in comparison.over if mode.p_value <= 0.05]
    kinds = [kind_of(mode, labels[gen]) for mode in over]
    modes = [over[kinds.index(kind)] for kind in NOVEL]
    scores = np.abs(comparison.score(x[fresh], modes))
    known, taken = labels[fresh], []
    for digit in SHOWN:
        taken.append(next(place for place in np.flatnonzero(known == digit) if place not in taken))
    rows = [
        {
            "unseen digit": int(known[place]),
            **{f"score, mode of {kind}": f"{one:.3f}" for kind, one in zip(NOVEL, scores[place], strict=True)},
        }
        for place in taken
    ]
    draw(x[fresh[taken]], scores[taken], NOVEL)
    areas = ", ".join(f"{auc(scores[:, mode], known == kind):.3f} of {kind}" for mode, kind in enumerate(NOVEL))
    record(
        "unseen_scores",
        rows,
        f"{SAMPLES} digits against {len(ref)} without {NOVEL[0]} and {NOVEL[1]}, pixels, 1 000 frequencies; size of "
        f"the score; AUC among {SAMPLES} unseen digits: {areas}",
    )
    print(areas)


if __name__ == "__main__":
    main()
