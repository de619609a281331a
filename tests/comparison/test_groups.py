"""Comparisons of sets whose samples are grouped by a column of metadata."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.comparison.inputs import open_inputs
from finc_eval.core.errors import UsageError
from finc_eval.core.run import Run

SETTINGS = fe.Settings(features=20, modes=2, groups="clip")


def frames(seed: int, n: int = 120, column: str = "clip"):
    rows = np.random.default_rng(seed).normal(size=(n, 4)).astype(np.float32)
    return fe.EmbeddingSet(rows, metadata={column: [row // 3 for row in range(n)]})


def test_a_comparison_groups_by_a_column_and_says_so_in_its_signature():
    found = fe.compare(frames(0), frames(1), SETTINGS)
    assert found.settings.groups == "clip"
    assert dict(found.signature.fields)["groups"] == "clip"
    assert "groups" not in dict(fe.compare(frames(0), frames(1), features=20).signature.fields)


def test_a_set_without_the_column_keeps_every_sample_for_itself():
    opened = open_inputs({"gen": frames(0), "ref": frames(1, column="label")}, SETTINGS, Run())
    assert len(np.unique(opened["gen"].group_hashes())) == 40 and opened["ref"].group_hashes() is None
    found = fe.compare(frames(0), frames(1, column="label"), SETTINGS)
    assert dict(found.signature.fields)["groups"] == "clip/none"


def test_a_sketch_brings_its_groups():
    sketch = fe.Sketch.reference(frames(1), features=20, groups="clip")
    found = fe.compare(frames(0), sketch, SETTINGS)
    assert dict(found.signature.fields)["groups"] == "clip"


def test_a_column_that_no_set_has_is_refused():
    with pytest.raises(UsageError, match=r"none of gen, ref has the column 'clop'.*did you mean .clip.*they have clip"):
        fe.compare(frames(0), frames(1), features=20, groups="clop")
    with pytest.raises(UsageError, match="give the samples metadata"):
        fe.compare(np.zeros((50, 4)), np.zeros((50, 4)), groups="clip")


def test_models_and_sweeps_group_too():
    models = fe.compare_models({"a": frames(0), "b": frames(1)}, frames(2), SETTINGS)
    assert dict(models.signature.fields)["groups"] == "clip"
    for parameter, values in (("sigma", [1.0]), ("rho", [1.0])):
        sweep = fe.sweep(frames(0), frames(1), parameter, values, SETTINGS)
        assert dict(sweep.points[0].comparison.signature.fields)["groups"] == "clip"
