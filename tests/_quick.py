"""Fewer permutations, steps and pictures, for tests that measure no rate.

Tests of p-values of boards and of maps are in tests/leaderboards, tests/numerics and tests/partitions.
"""

from contextlib import contextmanager
from dataclasses import replace

import pytest

AUDITS = {
    "finc_eval.memorization.attacks.PERMUTATIONS": 9,
    "finc_eval.memorization.tails.POWER_REPEATS": 500,
    "finc_eval.memorization.views.MAX_ALTERED": 20,
    "finc_eval.numerics.density_difference.MAX_CENTERS": 60,
}
"""Nine permutations behind the membership score, 500 imagined generators for each power, 20 altered pictures, and 60
centers of the density difference.

test_attacks, test_copying, test_hashes and test_density_difference have more."""

BOARDS = {
    "finc_eval.comparison.findings.EXCHANGES_OF_BOARDS": 999,
    "finc_eval.comparison.findings.EXCHANGES_OF_SETS": 249,
}
"""Boards of few models: an eighth of the random exchanges that a hundred models need."""

YARDSTICKS = {"finc_eval.leaderboards.yardsticks.SPLITS": 4}
"""A fifth of the splits of a reference that its yardsticks are means of."""

ROTATIONS = {"finc_eval.numerics.eigen.MAX_STEPS": 20}
"""Steps of varimax that leave directions orthogonal, and a few degrees from where more steps end."""

MAPS = {"finc_eval.numerics.neighbor_embedding.STEPS": 30}
"""A fifth of the steps of a map."""

MONITORS = {"finc_eval.monitoring.exchange.DRAWS": 1023}
"""A quarter of the random parts of a bag to which an evaluation is compared; test_exchange has them all."""

RELEASES = {"finc_eval.private.synthesis.learned.STEPS": 5}
"""Steps of the fit of columns without relations; test_synthesis_page has them all."""

EVERYTHING = (AUDITS, BOARDS, MAPS, RELEASES, ROTATIONS, YARDSTICKS)
"""All of them but `MONITORS`: results whose numbers no test measures."""


@contextmanager
def quick(*tables):
    """Set the constants of some tables, inside of the block."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (pair for table in tables for pair in table.items()):
            patch.setattr(name, value)
        yield


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    """For a room that imports it: boards, maps, releases, rotations and yardsticks of few steps."""
    with quick(BOARDS, MAPS, RELEASES, ROTATIONS, YARDSTICKS):
        yield


@pytest.fixture(scope="module", autouse=True)
def quick_releases():
    """For a module that imports it: a release is compared with columns without relations by few steps."""
    with quick(RELEASES):
        yield


@pytest.fixture(scope="module", autouse=True)
def small_pixels():
    """For modules that import it: the extractor "pixels" has 7 x 7 pixels in place of 28 x 28; what costs d² is cheap.

    No fixture of the session may embed by it.
    """
    from finc_eval.extractors import catalog

    catalog.all_cards()  # are kept, as they are shipped
    card = catalog.load_card("pixels")
    preprocessing, output = replace(card.preprocessing, size=(7, 7)), replace(card.output, dimension=147)
    small, packaged = replace(card, preprocessing=preprocessing, output=output, golden=None), catalog._packaged
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "_packaged", lambda name: small if name == "pixels" else packaged(name))
        yield
