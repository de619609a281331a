"""What a fabrication says to everybody, and what it says to the holder of the originals alone."""

import json

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

import finc_eval as fe
from finc_eval.report import outline

NOISE = fe.kahm.ElementNoise(epsilon=8, delta=1e-7)
SETTINGS = fe.kahm.KahmSettings(components=5)


@pytest.fixture(scope="module")
def made(digits):
    rows, labels = digits[0][:80], digits[1][:80]
    return rows, labels, fe.kahm.fabricate_classes(rows, labels, NOISE, fe.kahm.KahmSettings())


def test_distances_are_those_of_the_rows_and_the_linked_share_is_counted(made, digits):
    (rows, labels, fabricated), others = made, digits[0][100:160]
    found = fe.kahm.describe_fabrication(fabricated, labels, NOISE, originals=rows, others=others).nearness
    far = cdist(fabricated.samples, rows)
    among = cdist(rows, rows) + np.diag(np.full(len(rows), np.inf))
    expected = [np.diag(far), far.min(1), among.min(1), cdist(others, rows).min(1)]
    for row, distances in zip(found.distances, expected, strict=True):
        assert row.samples == len(distances)
        assert [row.tenth, row.median, row.ninetieth] == pytest.approx(
            np.quantile(distances, [0.1, 0.5, 0.9]), rel=1e-4
        )
    assert found.linked == (far.argmin(1) == np.arange(80)).mean() > 0.9
    assert found.attack.auc > 0.9 and found.membership.difference.p_value == 0.005


def test_with_originals_all_outputs_begin_with_for_whom_they_are(made):
    rows, labels, fabricated = made
    told = fe.kahm.describe_fabrication(fabricated, labels, NOISE, SETTINGS, originals=rows)
    assert next(iter(told.says)) == "holder"
    for text in (told.to_markdown(), told._repr_html_(), json.dumps(told.to_dict()), told.headline):
        assert "NOT PRIVATE" in text
    assert "holder" not in fe.kahm.describe_fabrication(fabricated, labels, NOISE, SETTINGS).says


def test_noise_of_a_seed_is_warned_of(digits):
    rows, labels = digits[0][:40], digits[1][:40]
    seeded = fe.kahm.fabricate_classes(rows, labels, NOISE, generator=torch.Generator().manual_seed(0))
    (warning,) = outline(fe.kahm.describe_fabrication(seeded, labels, NOISE)).warnings
    assert warning.startswith("NOT PRIVATE")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"others": np.ones((3, 784))}, "pass both"),
        ({"originals": np.ones((80, 3))}, "pass its originals"),
        ({"originals": np.ones((3, 784))}, "pass its originals"),
    ],
)
def test_sets_that_do_not_belong_together_are_refused(made, arguments, message):
    _, labels, fabricated = made
    with pytest.raises(fe.FincEvalError, match=message):
        fe.kahm.describe_fabrication(fabricated, labels, NOISE, **arguments)


def test_others_are_no_originals_and_each_sample_has_a_label(made):
    rows, labels, fabricated = made
    with pytest.raises(fe.DataError, match="are the same samples"):
        fe.kahm.describe_fabrication(fabricated, labels, NOISE, originals=rows, others=rows)
    with pytest.raises(fe.DataError, match="1 label"):
        fe.kahm.describe_fabrication(fabricated, [1], NOISE)


def test_pixels_stand_beside_what_was_fabricated_from_them_and_stay_in_the_file(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (24, 28, 28, 3), np.uint8)
    cache, labels = fe.extract(images, "pixels", tmp_path / "x.h5"), ["a", "b"] * 12
    slight = fe.kahm.ElementNoise(epsilon=1e6)
    fabricated = fe.kahm.fabricate_classes(cache, labels, slight, SETTINGS, fabricated=False)
    told = fe.kahm.describe_fabrication(fabricated, labels, slight, SETTINGS, originals=cache)
    for name in told.pairs[:8]:
        for label in ("original", "fabricated"):
            picture = np.asarray(told.gallery.pictures[label][name].last)
            np.testing.assert_array_equal(picture, images[int(name)], label)
    told.save(tmp_path / "f.h5")
    assert fe.load(tmp_path / "f.h5").to_html(tmp_path / "f.html").read_text().count("data:image/png") == 16
    assert "are in the .h5 file" in fe.load(tmp_path / "f.json").to_html(tmp_path / "j.html").read_text()
    with pytest.raises(fe.UsageError, match="leave samples out"):
        told.to_html(tmp_path / "g.html", samples={"original": images})
