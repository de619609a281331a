"""Do the first modes of two extractors show the same kinds (appendix B.3.1 of FINC's paper)?

The paper compares Inception with SwAV and ResNet-50, whose weights cannot be had here. Here: pixels and
EfficientNet-Lite0, on photographs of 24 classes of Tiny-ImageNet, six of them held out of the reference, and on digits,
1 and 7 held out. The kind of a mode is the class of most of its 20 best samples. Rank correlation: of the scores of the
generated samples, between a mode and the mode of the other extractor that is most like it.
"""

import io
import zipfile

import numpy as np
import torch
from _real import asset, mnist, tiny_imagenet
from _record import record
from PIL import Image
from scipy.stats import spearmanr

import finc_eval as fe

FIRST, BEST, DIGITS, HELD_OUT = 2, 20, 800, 6


def pictures(path):
    """Return the photographs, (n, 64, 64, 3) uint8, in the order of `tiny_imagenet`."""
    with zipfile.ZipFile(path) as photographs:
        names = sorted(name for name in photographs.namelist() if name.endswith(".JPEG"))
        opened = (Image.open(io.BytesIO(photographs.read(name))).convert("RGB") for name in names)
        return np.stack([np.asarray(one.resize((64, 64))) for one in opened])


def photographs():
    """Return embeddings by extractor, classes, and the classes that the reference lacks."""
    found, path = tiny_imagenet(), asset("photos", "tiny_imagenet_24x300.zip")
    if found is None or path is None:
        return None
    embeddings, labels = found
    held_out = np.random.default_rng(0).choice(np.unique(labels), HELD_OUT, replace=False)
    pixels = np.asarray(fe.extract(pictures(path), "pixels"))
    return {"efficientnet-lite0": embeddings, "pixels": pixels}, labels, held_out


def digits():
    """Return embeddings by extractor, classes, and the classes that the reference lacks."""
    found = mnist()
    if found is None:
        return None
    rows, labels = (one[: 2 * DIGITS] for one in found)
    images = np.repeat((255 * rows).round().astype(np.uint8).reshape(-1, 28, 28, 1), 3, 3)
    return {"efficientnet-lite0": np.asarray(fe.extract(images, "efficientnet-lite0")), "pixels": rows}, labels, [1, 7]


def first_modes(gen, ref, known):
    """Return the kinds of the first modes, and the scores of the generated samples on all modes found."""
    comparison = fe.compare(gen, ref, features=1000)
    over = [mode for mode in comparison.over if mode.p_value <= 0.05]
    kinds = []
    for mode in over[:FIRST]:
        classes, counts = np.unique(known[[int(name) for name in mode.typical("gen")[:BEST]]], return_counts=True)
        kinds.append((str(classes[counts.argmax()]), counts.max() / counts.sum()))
    return kinds, np.asarray(comparison.score(gen, over)) if over else np.zeros((len(gen), 0))


def main():
    torch.set_num_threads(1)
    rows = []
    for name, found in (("photographs", photographs()), ("digits", digits())):
        if found is None:
            continue
        embeddings, labels, held_out = found
        first = np.random.default_rng(1).permutation(len(labels)) % 2 == 0
        kept = ~first & ~np.isin(labels, held_out)
        told = {one: first_modes(x[first], x[kept], labels[first]) for one, x in embeddings.items()}
        for one, other in (("efficientnet-lite0", "pixels"), ("pixels", "efficientnet-lite0")):
            (kinds, scores), (theirs, others) = told[one], told[other]
            ranks = [
                max(abs(spearmanr(scores[:, mode], column).statistic) for column in others.T)
                for mode in range(len(kinds) if others.size else 0)
            ]
            rows.append(
                {
                    "sets": name,
                    "extractor": one,
                    "modes found": scores.shape[1],
                    "first modes": ", ".join(f"{kind} ({share:.0%})" for kind, share in kinds),
                    "held out": sum(kind in map(str, held_out) for kind, _ in kinds),
                    "also first of the other": len({kind for kind, _ in kinds} & {kind for kind, _ in theirs}),
                    "rank correlation": ", ".join(f"{rank:.2f}" for rank in ranks),
                }
            )
            print(rows[-1], flush=True)
    if rows:
        record(
            "extractors_agree",
            rows,
            f"half of each class in either set; photographs 24 x 300, {HELD_OUT} classes held out of the reference; "
            f"{2 * DIGITS} digits, 1 and 7 held out; 1 000 frequencies",
        )


if __name__ == "__main__":
    main()
