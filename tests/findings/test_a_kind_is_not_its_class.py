"""A kind is not its class: what is said of a lost kind if the set has other samples of its class."""

import numpy as np
import pytest

import finc_eval as fe

N, KINDS, AXES = 160, 8, 16
CENTERS = 4 * np.random.default_rng(0).normal(size=(KINDS + 1, AXES))
NAMES = ["apple", "boat", "crane", "drum", "eagle", "fox", "goat", "horse"]


def drawn(seed, change=None, *, few=False, labeled=True):
    """A set of eight kinds of one label each; of the first, no samples, or samples of another place, or of three."""
    rng = np.random.default_rng(seed)
    kinds = np.arange(N) % KINDS
    place, keep = kinds.copy(), np.ones(N, bool)
    if change == "lost":
        keep = kinds != 0
    elif change == "moved":
        place[kinds == 0] = KINDS
    rows = CENTERS[place] + 0.5 * rng.normal(size=(N, AXES))
    if few:
        mine = np.flatnonzero(kinds == 0)
        originals = CENTERS[KINDS] + 0.5 * rng.normal(size=(3, AXES))
        rows[mine] = originals[np.arange(len(mine)) % 3] + 0.01 * rng.normal(size=(len(mine), AXES))
    labels = [NAMES[kind] for kind in kinds[keep]] if labeled else [""] * int(keep.sum())
    return fe.EmbeddingSet(rows[keep].astype(np.float32), metadata={"label": labels})


APPLES = "“apple” in all is 12.5 % (reference 12.5 %)."
SENTENCES = {
    "a class that is drawn otherwise": (
        "moved", False, f"The unusual “apple” is 12.5 % of the generated set (reference 0.0 %); {APPLES}"
    ),
    "a class that is lost": ("lost", False, "The kind “apple” is 0.0 % of the generated set (reference 12.5 %)."),
    "a class from three pictures": (
        None, True, "12 % of the generated set is 3 samples, nearly repeated 20 times in all (reference 0 %)."
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SENTENCES)
def test_the_usual_samples_of_a_class_are_missing_and_the_class_is_not(case):
    change, few, sentence = SENTENCES[case]
    found = fe.compare(drawn(1, change, few=few), drawn(2), features=100)
    said = [finding.text for finding in found.findings]
    assert sentence in said
    lost = [finding for finding in found.findings if finding.kind == "kind" and not finding.is_more]
    assert len(lost) == (change == "lost")
    if few:  # what is lost follows from the repeats
        (repeat,) = [finding for finding in found.findings if finding.kind == "repeat"]
        assert repeat.explains
