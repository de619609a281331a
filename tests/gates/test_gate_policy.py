"""Policies: written first, read from TOML or Python, refused in one sentence."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.estimates.retraining import SAMPLING_ONLY
from finc_eval.gates.first_policy import first_policy


def test_the_first_policy_has_few_lines_and_can_be_read(sets, tmp_path):
    """A release without a change passes it: test_gate_detection.py."""
    text = first_policy([sets["old"][:600]], sets["ref"][:600])
    assert len([line for line in text.splitlines() if not line.startswith("#")]) <= 7
    assert "floor" in text and SAMPLING_ONLY in text
    (tmp_path / "gate.toml").write_text(text)
    assert fe.Policy.of(tmp_path / "gate.toml").kinds is not None


@pytest.mark.parametrize(
    "table, error, message",
    [
        ({}, fe.UsageError, "limits nothing"),
        ({"kinds": {}}, fe.UsageError, "limits nothing"),
        ({"metrics": {"fd": {}}}, fe.UsageError, "limits nothing"),
        ({"copying": {}}, fe.UsageError, "limits nothing"),
        ({"basics": {}}, fe.UsageError, "limits nothing"),
        ({"kind": {"lose": 0.5}}, fe.DataError, 'unknown key "kind".*did you mean "kinds"'),
        ({"kinds": {"loose": 0.5}}, fe.DataError, 'unknown key "kinds.loose".*did you mean "lose"'),
        ({"metrics": {"fd": {"wors": 0.5}}}, fe.DataError, 'did you mean "worse"'),
        ({"metrics": {"fdd": {"worse": 0.5}}}, fe.UsageError, 'did you mean "fd"'),
        ({"kinds": {"lose": 1.5}}, fe.UsageError, "lose must lie between 0 and 1"),
        ({"kinds": {"lose": 0.5}, "alpha": 2.0}, fe.UsageError, "alpha must lie between 0 and 1"),
        ({"kinds": {"lose": 0.5}, "interim": 0}, fe.UsageError, "interim must be a whole number"),
        ({"kinds": {"lose": 0.5, "level": 20}}, fe.DataError, 'unknown key "kinds.level"'),
    ],
)
def test_a_wrong_policy_is_refused_in_one_sentence(table, error, message):
    with pytest.raises(error, match=message):
        fe.Policy.of(table)


def test_a_policy_is_read_from_toml(tmp_path):
    path = tmp_path / "gate.toml"
    path.write_text('kinds.lose = 0.5\nmetrics.fd.worse = "noise"\n')
    policy = fe.Policy.of(path)
    assert (policy.kinds.lose, policy.metrics["fd"].worse) == (0.5, "noise")
    path.write_text("kinds.lose = ")
    with pytest.raises(fe.DataError, match="cannot be read as a policy in TOML"):
        fe.Policy.of(path)
    with pytest.raises(fe.DataError, match="does not exist"):
        fe.Policy.of(Path("missing.toml"))


def test_a_policy_in_python_may_have_the_dotted_keys_of_toml(tmp_path):
    (tmp_path / "gate.toml").write_text("kinds.lose = 0.5\nkinds.min_share = 0.1\nmetrics.fd.difference = 1.0\n")
    dotted = {"kinds.lose": 0.5, "kinds": {"min_share": 0.1}, "metrics.fd.difference": 1.0}
    assert fe.Policy.of(dotted) == fe.Policy.of(tmp_path / "gate.toml")
    assert dotted["kinds"] == {"min_share": 0.1}


@pytest.mark.long
def test_a_policy_is_for_one_extractor(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    pictures = np.random.default_rng(0).integers(256, size=(3, 60, 4, 4, 3), dtype=np.uint8)
    old, new, ref = (fe.extract(one, "pixels", tmp_path / f"{place}.h5") for place, one in enumerate(pictures))
    text = first_policy([old], ref)
    (line,) = [line for line in text.splitlines() if line.startswith("extractor")]
    policy = fe.Policy.of(tomllib.loads(text))
    assert policy.extractor == line.split('"')[1] and policy.extractor.startswith("pixels@")
    limits = {"basics": {"samples": 10}}
    for extractor in (policy.extractor, "pixels", None):
        assert fe.gate(new, old, ref, limits | {"extractor": extractor}).overall == "pass"
    with pytest.raises(
        fe.IncompatibleError, match="the policy is for embeddings by resnet50@12345678, and the sets are"
    ):
        fe.gate(new, old, ref, limits | {"extractor": "resnet50@12345678"})
    rows = np.random.default_rng(1).normal(size=(3, 60, 4))
    assert fe.gate(*rows, limits | {"extractor": "resnet50"}).overall == "pass"
    assert "extractor" not in first_policy([rows[0]], rows[1])


@pytest.mark.long
def test_the_first_policy_names_the_groups_and_a_release_of_such_groups_passes(tmp_path):
    rng = np.random.default_rng(2)

    def grouped(n):
        centers = rng.normal(size=(n // 4, 6))
        rows = np.repeat(centers, 4, axis=0) + 0.1 * rng.normal(size=(n, 6))
        return fe.EmbeddingSet(rows, metadata={"prompt": np.repeat(np.arange(n // 4), 4).astype(str)})

    new, old, ref = grouped(800), grouped(800), grouped(800)
    grouped_policy, plain = (tomllib.loads(first_policy([old], ref, groups=one)) for one in ("prompt", None))
    assert grouped_policy["groups"] == "prompt"
    assert grouped_policy["kinds"]["lose"] > plain["kinds"]["lose"]
    assert fe.gate(new, old, ref, grouped_policy).overall == "pass"
    with pytest.raises(fe.UsageError, match="has no column 'scene': it has prompt"):
        first_policy([old], ref, groups="scene")
