"""Workers send each report that is counted or has a text."""

from types import SimpleNamespace

import pytest
from _reports import FewReports, are_few, says_something


def report(when, outcome="passed", sections=()):
    return SimpleNamespace(when=when, outcome=outcome, passed=outcome == "passed", sections=[*sections])


@pytest.mark.parametrize(
    ("one", "is_sent"),
    [
        (report("call"), True),
        (report("setup"), False),
        (report("teardown"), False),
        (report("call", "failed"), True),
        (report("setup", "failed"), True),
        (report("setup", "skipped"), True),
        (report("teardown", "failed"), True),
        (report("teardown", sections=[("Captured stdout", "a word")]), True),
    ],
)
def test_what_failed_was_skipped_or_printed_is_sent_and_of_the_rest_the_call(one, is_sent, monkeypatch):
    sent, item = [], SimpleNamespace(nodeid="a", location=("a.py", 1, "a"), ihook=SimpleNamespace())
    item.ihook.pytest_runtest_logstart = item.ihook.pytest_runtest_logfinish = lambda **_: None
    item.ihook.pytest_runtest_logreport = lambda report: sent.append(report)
    monkeypatch.setattr("_reports.runtestprotocol", lambda *_, **__: [one])
    assert FewReports().pytest_runtest_protocol(item, None) is True
    assert sent == [one] * is_sent and says_something(one) == is_sent


@pytest.mark.parametrize("asked", [{}, {"durations": 9}, {"xmlpath": "tests.xml"}, {"cpu_seconds": "cpu.csv"}])
def test_who_asks_for_the_seconds_of_phases_gets_all_reports(asked, monkeypatch):
    options = SimpleNamespace(**{"durations": None, "xmlpath": None, "cpu_seconds": None} | asked)
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert are_few(options) == (not asked)
    monkeypatch.delenv("PYTEST_XDIST_WORKER")
    assert not are_few(options)
