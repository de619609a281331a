"""Tasks of a campaign are done once, as far as the time allows."""

import sys

import _kept
import pytest

SETTINGS = [{"form": "plain", "ε": 1}, {"form": "plain", "ε": 2.5}, {"form": "other", "ε": ""}]


@pytest.fixture
def rows_of(tmp_path, monkeypatch):
    """Take the rows of SETTINGS, and return them with the settings that were computed."""
    monkeypatch.setattr(_kept, "RUNS", tmp_path / "runs")

    def taken(*options, settings=SETTINGS):
        monkeypatch.setattr(sys, "argv", ["benchmark", *options])
        computed = []

        def one(form, epsilon):
            computed.append((form, epsilon))
            return {"length": len(form)}

        return _kept.rows_of("name", settings, one), computed

    return taken


def test_kept_rows_are_not_computed_again(rows_of):
    first, computed = rows_of(settings=SETTINGS[1:])
    assert computed == [("plain", 2.5), ("other", "")]
    second, computed = rows_of()
    assert computed == [("plain", 1)]
    assert second == [{"form": "plain", "ε": 1, "length": 5}, *first]


def test_no_row_begins_after_the_time(rows_of):
    assert rows_of("--minutes", "0") == ([], [])
