"""What `gate --init` writes is what its reader reads: for sets of every odd kind, and for names of every odd letter."""

import sys
import unicodedata

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.core.files.parsed import parse_toml, toml_comment, toml_value
from finc_eval.core.storage import write_readable
from finc_eval.gates.first_policy import Proposal, first_policy, policy_text
from finc_eval.gates.policy import Policy


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32)


def pictures(n, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, 8, 8, 3), dtype=np.uint8)


SAME, BLACK = np.ones((40, 6), np.float32), np.zeros((30, 8, 8, 3), np.uint8)

CASES = {
    "the reference is the baseline": lambda: ([rows(120)], rows(120)),
    "the baseline is a part of the reference": lambda: ([rows(120)[:40]], rows(120)),
    "one of two baselines is the reference": lambda: ([rows(120), rows(120, 1)], rows(120)),
    "all but one of the baseline are copies": lambda: ([np.concatenate([rows(799), rows(1, 1)])], rows(799)),
    "all but one are repeats": lambda: ([np.concatenate([np.tile(SAME[:1], (799, 1)), rows(1, 1)])], rows(120)),
    "one point in both sets": lambda: ([SAME], SAME),
    "one point in the baseline": lambda: ([SAME], rows(40)),
    "one point in the reference": lambda: ([rows(40)], SAME),
    "few samples": lambda: ([rows(20)], rows(20, 1)),
    "sets without anything in common": lambda: ([rows(40) + 1e6], rows(40, 1)),
    "very small numbers": lambda: ([rows(40) * 1e-12], rows(40, 1) * 1e-12),
    "pictures, the reference is the baseline": lambda: ([pictures(30)], pictures(30)),
    "black pictures": lambda: ([BLACK], BLACK),
    "black pictures in the baseline": lambda: ([BLACK], pictures(30)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.one_of_each(by=lambda name: "copies" in name or "point in both" in name)
def test_a_first_policy_is_read_and_judges_whatever_the_sets_are(case, tmp_path):
    old, ref = CASES[case]()
    extractor = {"extractor": "pixels"} if old[0].ndim == 4 else {}
    path = tmp_path / "gate.toml"
    path.write_text(first_policy(old, ref, **extractor))
    policy = Policy.of(path)
    assert policy.kinds is not None
    for limit in (policy.basics and policy.basics.copies, policy.basics and policy.basics.duplicates):
        assert limit is None or 0 < limit < 1
    verdict = fe.gate(old[0], old[0], ref, policy, **extractor)
    assert verdict.exit_code in (0, 2)


def test_a_limit_that_limits_nothing_is_a_comment_that_says_so():
    text = first_policy([rows(120)], rows(120))
    assert "basics.copies =" not in text
    (line,) = [line for line in text.splitlines() if "basics.copies" in line]
    assert line.startswith("# No limit basics.copies, which would be 1:") and "the baseline has 1)" in line


NOTHING = {
    "kinds.lose": 1.0,
    "kinds.new": 1.0,
    "basics.copies": 1.0,
    "basics.duplicates": 1.0,
    "metrics.fd.difference": float("inf"),
    "metrics.fd.worse": float("nan"),
    "metrics.kid.difference": 0.0,
    "appearance.whole": 0.0,
}


@pytest.mark.parametrize("key", NOTHING)
def test_a_limit_that_the_reader_refuses_is_not_written(key):
    text = policy_text([Proposal("kinds.moved", 0.5, "kept"), Proposal(key, NOTHING[key], "what it is")])
    assert Policy.parse(text) == Policy.of({"kinds.moved": 0.5})
    assert f"# No limit {key}, which would be" in text


def test_shares_near_one_stay_below_it_and_above_what_the_baseline_has():
    from finc_eval.gates.first_policy import _most

    for n in (60, 3000, 100_000):
        for copies in (0, 1, n // 3, n - 2, n - 1):
            assert copies / n < _most(copies / n) < 1
    assert _most(1.0) == 1


# Names


def texts():
    """200 texts with letters of all Unicode categories, and with what TOML, JSON and paths mean something by."""
    by_category = {}
    for code in range(sys.maxunicode + 1):
        by_category.setdefault(unicodedata.category(chr(code)), []).append(chr(code))
    del by_category["Cs"]  # halves of surrogate pairs are no text
    rng = np.random.default_rng(0)
    odd = ['"', "'", "\\", "#", "a.b", "1.2.3.4.5.6.7.8.9.10", " ", "", "\n", "\r\n", "\t", "\x7f", "\ufeff", "]", "=",
           '"""', "\\u00e9", "{x}", "[kinds]", "é", "é", "😀", "true", "nan", "2024-01-01"]  # fmt: skip
    found = [*odd, *(f"a{letters[0]}b{letters[-1]}" for letters in by_category.values())]
    while len(found) < 200:
        of_six = (by_category[one] for one in rng.choice([*by_category], 6))
        found.append("".join(letters[rng.integers(len(letters))] for letters in of_six))
    return found


TEXTS = texts()


def test_texts_of_all_categories_come_back_from_toml():
    assert len(TEXTS) == 200 and len({unicodedata.category(letter) for text in TEXTS for letter in text}) == 29
    for text in TEXTS:
        assert parse_toml(f"x = {toml_value(text)}  {toml_comment(text)}", "the text") == {"x": text}
        assert "\n" not in toml_value(text) + toml_comment(text)


def test_numbers_come_back_from_toml():
    for value in (0, 1, 10**6, 0.1, 1 / 3, 1e-300, 0.999833, True):
        found = parse_toml(f"x = {toml_value(value)}", "the text")["x"]
        assert found == value and type(found) is type(value)
    for value in (float("inf"), float("nan"), "\ud800"):
        with pytest.raises(DataError, match="cannot be written in TOML"):
            toml_value(value)


def test_texts_of_all_categories_come_back_from_a_written_policy(tmp_path):
    path = tmp_path / "gate.toml"
    for text in TEXTS:
        lines = [
            "# a comment",
            Proposal("groups", text, text),
            Proposal("extractor", text, text),
            Proposal("kinds.lose", 0.5, text),
            Proposal("kinds.column", text, text),
        ]
        write_readable(path, policy_text(lines), Policy.of, Policy.of({one.key: one.value for one in lines[1:]}))
        policy = Policy.of(path)
        assert (policy.groups, policy.extractor, policy.kinds.column) == (text, text, text)


def test_a_policy_for_groups_of_an_odd_name_is_read_and_judges(tmp_path):
    name = 'prompt "😀" \\ #1.2.3.4.5.6.7.8.9\x7f'
    sets = [fe.EmbeddingSet(rows(60, seed), metadata={name: [f"g{i // 2}" for i in range(60)]}) for seed in range(2)]
    path = tmp_path / "gate.toml"
    path.write_text(first_policy([sets[0]], sets[1], groups=name))
    assert Policy.of(path).groups == name
    assert fe.gate(sets[0], sets[0], sets[1], path).exit_code in (0, 2)


def test_nothing_is_written_that_is_read_as_something_else(tmp_path):
    path = tmp_path / "gate.toml"
    path.write_text("kinds.new = 0.5\n")
    meant = Policy.of({"kinds.lose": 0.5})
    for text in ("kinds.lose = 0.6\n", "kinds.lose = 1\n", "kinds.lose = \n"):
        with pytest.raises(DataError, match=r"gate.toml is not written, because finc-eval could not read it back"):
            write_readable(path, text, Policy.of, meant)
        assert path.read_text() == "kinds.new = 0.5\n" and [*tmp_path.iterdir()] == [path]
    write_readable(path, "kinds.lose = 0.5\n", Policy.of, meant)
    assert Policy.of(path) == meant
