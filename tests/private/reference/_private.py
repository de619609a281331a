"""Private sketches of the tests."""

from finc_eval.privacy import release_sketch

DELTA = 1e-5


def sketch_of(private, public, epsilon=1.0, **rest):
    return release_sketch(private, public=public, epsilon=epsilon, delta=DELTA, ledger=None, **rest)
