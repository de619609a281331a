"""Is a generator that copied nothing accused because the holdout is another set than the training set?

Generated and training samples are independent draws of one law, the holdout is one of another law: 300 samples of each
in 16 dimensions, by default. An accusation is a verdict that speaks of altered copies, or of samples nearer to the
training set. A whole audit is made where the two sets are not told apart; where they are, it accuses nobody
(`tests/memorization/test_unlike_holdout.py`). The last rows plant copies, with a holdout of the same law.

    python benchmarks/audit_shift.py --minutes 7
"""

import numpy as np
from _rows import record_rows

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.memorization import attacks, tails
from finc_eval.memorization.holdout import holdout_p_value
from finc_eval.memorization.settings import AUDIT_ALPHA
from finc_eval.numerics.inference import wilson

# What no verdict depends on takes two thirds of the time of such small audits.
attacks.membership_difference = lambda *_: None
tails.POWER_REPEATS = 1

N, DIM, DRAWS = 300, 16, 100
CENTERS = 4 * np.random.default_rng(71).normal(size=(20, DIM))


def normal(rng, n=N, mean=0.0, scale=1.0):
    return mean + scale * rng.normal(size=(n, DIM))


def classes(rng, n=N, first=0, weights=None, noise=1.0, count=10):
    """A mixture of as many classes; the first ones may be missing or rare."""
    return noise * rng.normal(size=(n, DIM)) + CENTERS[rng.choice(np.arange(first, count), n, p=weights)]


def few_wider(rng, scale):
    return np.where(rng.random((N, 1)) < 0.1, scale, 1)


def first_rare(share):
    return [share, *[(1 - share) / 9] * 9]


ONE_AXIS = np.where(np.arange(DIM) == 0, 2.0, 1.0)
LAWS = {
    "the same law": (normal, normal),
    "the same law, ten classes": (classes, classes),
    "lacks 1 of 10 classes": (classes, lambda rng: classes(rng, first=1)),
    "lacks 2 of 20 classes": (lambda rng: classes(rng, count=20), lambda rng: classes(rng, first=2, count=20)),
    "twice as wide": (normal, lambda rng: normal(rng, scale=2)),
    "one axis twice as wide": (normal, lambda rng: normal(rng) * ONE_AXIS),
    "a tenth of it is twice as wide": (normal, lambda rng: normal(rng) * few_wider(rng, 2)),
    "1.1 times as wide": (normal, lambda rng: normal(rng, scale=1.1)),
    "a class at 20 % in place of 10 %": (classes, lambda rng: classes(rng, weights=first_rare(0.2))),
    "0.9 times as wide": (normal, lambda rng: normal(rng, scale=0.9)),
    "shifted by 0.2": (normal, lambda rng: normal(rng, mean=0.2)),
    "classes 1.15 times as wide": (classes, lambda rng: classes(rng, noise=1.15)),
    "Student's t of 6 degrees": (normal, lambda rng: rng.standard_t(6, (N, DIM))),
    "shifted by 0.1": (normal, lambda rng: normal(rng, mean=0.1)),
    "a class at 5 % in place of 10 %": (classes, lambda rng: classes(rng, weights=first_rare(0.05))),
    "1.1 times as wide, 100 samples": (normal, lambda rng: normal(rng, 100, scale=1.1)),
    "lacks 1 of 10 classes, 600 samples": (classes, lambda rng: classes(rng, 600, first=1)),
    "1.05 times as wide": (normal, lambda rng: normal(rng, scale=1.05)),
    "lacks 1 of 20 classes": (lambda rng: classes(rng, count=20), lambda rng: classes(rng, first=1, count=20)),
    "classes 1.06 times as wide": (classes, lambda rng: classes(rng, noise=1.06)),
    "a tenth of it is 1.5 times as wide": (
        normal,
        lambda rng: normal(rng) * np.where(rng.random((N, 1)) < 0.1, 1.5, 1),
    ),
    "Student's t of 10 degrees": (normal, lambda rng: rng.standard_t(10, (N, DIM))),
}
"""The law of generated and training samples, and that of the holdout."""

COPIES = {
    f"the same law, {share} % of gen are copies with noise of {noise}": (share * N // 100, noise)
    for noise in (0.05, 0.4)
    for share in (1, 5, 20)
}
"""Number of planted copies, and their noise; median distances to the nearest other training sample are 1 an axis."""


def accuses(audit):
    """Return True where an audit concludes copying from distances."""
    return audit.nearer_to == "training" or (bool(audit.copying.copies.at_least) and not audit.holdout_differs)


def one_law(holdout):
    """Return the rates of one law of holdouts."""
    law, other = LAWS.get(holdout, (classes, classes))
    told = accused = false = 0
    for draw in range(DRAWS):
        rng = np.random.default_rng([draw, 93])
        gen, train, rest = (one.astype(np.float32) for one in (law(rng), law(rng), other(rng)))
        copies, noise = COPIES.get(holdout, (0, 0))
        gen[:copies] = train[:copies] + noise * rng.normal(size=(copies, DIM))
        p_value = holdout_p_value(as_embeddings(train), as_embeddings(rest), 0, Run(device="cpu"))
        told += p_value <= AUDIT_ALPHA
        if p_value > AUDIT_ALPHA:
            audit = fe.audit(gen, train, rest, stated_epsilon=0.5, stated_delta=1e-5)
            accused += accuses(audit)
            false += audit.stated is not None and audit.stated.is_falsified
    low, high = wilson(accused / DRAWS, DRAWS, 0.95)
    return {
        "told to be another set": told,
        "accused": accused,
        "interval, %": f"{100 * low:.1f} to {100 * high:.1f}",
        "ε = 0.5 called false": false,
    }


if __name__ == "__main__":
    record_rows(
        "audit_shift",
        [{"holdout": one} for one in (*LAWS, *COPIES)],
        one_law,
        f"{DRAWS} draws each of {N} samples in {DIM} dimensions; Wilson's interval of the accused, at 95 %; the "
        f"last {len(COPIES)} rows plant copies, which are found where accused",
    )
