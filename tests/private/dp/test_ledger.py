import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import filelock
import numpy as np
import pytest
from _forks import exit_code, forked
from PIL import Image

import finc_eval as fe
from finc_eval.core import storage as locks
from finc_eval.core.errors import BudgetError, DataError, UsageError
from finc_eval.core.record import plain
from finc_eval.core.storage import lock_of
from finc_eval.privacy import Guarantee, Ledger, PublicTransform, release_sketch
from finc_eval.private.dp.guarantee import epsilon_of, mu_of
from finc_eval.private.dp.ledger import PlannedLedger
from finc_eval.private.dp.ledger_lines import seal as _line
from finc_eval.private.hermite.hermite import TotalDegree

DELTA = 1e-5
HEADER = b'{"program": "finc-eval", "kind": "privacy ledger"'
HEAD = {
    "program": "finc-eval",
    "kind": "privacy ledger",
    "schema": 3,
    "epsilon": 1,
    "delta": 1e-5,
    "adjacency": "replace",
    "releases": "0000000000",
    "salt": "00",
}
PUBLIC = PublicTransform.constant(4, length_scale=2, radius=3)
PHI = TotalDegree(4, 2, length_scale=2, rho=0.1)


def records(seed=0):
    return np.random.default_rng(seed).normal(size=(50, 4))


def release_of(rows, epsilon, ledger, **rest):
    return release_sketch(rows, public=PUBLIC, epsilon=epsilon, delta=DELTA, ledger=ledger, feature_map=PHI, **rest)


def python(code, *arguments):
    """Another process that runs this code."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.jsonl", 1.0, DELTA)


def test_releases_add_up_and_the_one_that_exceeds_the_budget_is_refused(ledger):
    release_of(records(), 0.6, ledger)
    left = ledger.left(ledger.spendings()[0].data)
    assert left == pytest.approx(epsilon_of((mu_of(1, DELTA) ** 2 - mu_of(0.6, DELTA) ** 2) ** 0.5, DELTA))
    message = f"would spend epsilon 0.9, .* budget of epsilon 1 .* at most epsilon {left:.4g} is left after 1 release$"
    with pytest.raises(BudgetError, match=message):
        release_of(records(), 0.9, ledger)
    release_of(records(), left, ledger.path)
    with pytest.raises(BudgetError, match="nothing is left after 2 releases"):
        release_of(records(), 0.01, ledger)
    assert len(ledger.spendings()) == 2


def test_every_data_set_has_its_own_budget_whatever_the_order_of_its_records(ledger):
    for seed in (0, 1):
        release_of(records(seed), 1.0, ledger)
    for again in (records(1), records(0)[::-1].copy()):
        with pytest.raises(BudgetError, match="nothing is left"):
            release_of(again, 0.1, ledger)


def test_a_name_joins_what_digests_do_not(ledger):
    release_of(records(0), 1.0, ledger, name="ward 7")
    with pytest.raises(BudgetError, match="nothing is left"):
        release_of(records(0)[:40], 0.1, ledger, name="ward 7")
    with pytest.raises(BudgetError, match="nothing is left"):
        release_of(records(0), 0.1, ledger, name="another name")


def test_what_a_name_joined_once_stays_joined(ledger):
    whole, part = records(0), records(0)[:40]
    for epsilon, rows in ((0.5, whole), (0.5, part)):
        release_of(rows, epsilon, ledger, name="ward 7")
    spent = 2**0.5 * mu_of(0.5, DELTA)
    assert [ledger.spent(line.data[:1]) for line in ledger.spendings()] == pytest.approx([spent, spent])
    with pytest.raises(BudgetError, match="after 2 releases"):
        release_of(part, 0.9, ledger)
    (account,) = ledger.accounts()
    assert account.epsilon_left == pytest.approx(ledger.left(["ward 7"]))


def test_a_renamed_copy_of_a_folder_has_the_same_budget(ledger, digits, tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    images = (digits[0][:30].reshape(-1, 28, 28) * 255).astype(np.uint8)
    for folder in ("wards", "copy"):
        (tmp_path / folder).mkdir()
        for number, image in enumerate(images):
            Image.fromarray(image).save(tmp_path / folder / f"{folder}-{-number % 30:02d}.png")
    caches = [fe.extract(tmp_path / folder, "pixels") for folder in ("wards", "copy")]
    public = PublicTransform.constant(caches[0].dim, 2, length_scale=10, radius=10)
    release_sketch(caches[0], public=public, epsilon=1.0, ledger=ledger)
    with pytest.raises(BudgetError, match="nothing is left"):
        release_sketch(caches[1], public=public, epsilon=0.1, ledger=ledger)


def test_what_is_refused_for_another_reason_spends_nothing(ledger):
    with pytest.raises(DataError, match="no labels"):
        release_of(records(), 1.0, ledger, classes=["a"])
    with pytest.raises(BudgetError, match="do not add"):
        release_of(records(), 1.0, ledger, adjacency="zero-out")
    assert ledger.spendings() == ()


@pytest.mark.long  # quick: the next test
def test_a_kill_between_the_spending_and_the_noise_gives_no_second_release_for_free(ledger, tmp_path):
    out = tmp_path / "s.h5"
    child = python(
        """
        import os, signal, sys
        import numpy as np
        from finc_eval.privacy import PublicTransform, release_sketch
        from finc_eval.private.dp import gaussian_mechanism as gaussian
        from finc_eval.private.hermite.hermite import TotalDegree
        gaussian.secure_normal = lambda shape: os.kill(os.getpid(), signal.SIGKILL)
        public = PublicTransform.constant(4, length_scale=2, radius=3)
        rows = np.random.default_rng(0).normal(size=(50, 4))
        phi = TotalDegree(4, 2, length_scale=2, rho=0.1)
        release_sketch(rows, public=public, epsilon=1.0, ledger=sys.argv[1], feature_map=phi).save(sys.argv[2])
        """,
        ledger.path,
        out,
    )
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert not out.exists()
    assert len(ledger.spendings()) == 1
    with pytest.raises(BudgetError, match="nothing is left after 1 release"):
        release_of(records(), 0.1, ledger)


@pytest.mark.parametrize("planned", [False, True], ids=["created", "planned"])
def test_the_spending_is_on_the_disk_before_noise_is_drawn(planned, tmp_path, monkeypatch):
    from finc_eval.private.dp import gaussian_mechanism as gaussian

    path = tmp_path / "ledger.jsonl"
    ledger = PlannedLedger(path, 1.0, DELTA) if planned else Ledger.create(path, 1.0, DELTA)
    synced, seen = [], []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (real(file), synced.append(os.fstat(file).st_ino)))

    def noise(shape):
        assert path.stat().st_ino in synced
        assert tmp_path.stat().st_ino in synced or not planned  # a new file's name is an entry of its folder
        seen.append(len(ledger.spendings()))
        raise KeyboardInterrupt

    monkeypatch.setattr(gaussian, "secure_normal", noise)
    with pytest.raises(KeyboardInterrupt):
        release_of(records(), 0.5, ledger)
    assert seen == [1]


def spend_all(path, mine, other, won):
    """Wait for the other process, and spend the budgets of eight data sets; write which this process has won."""
    ledger, append = Ledger(path), Ledger._append
    Ledger._append = lambda self, spending: (time.sleep(0.02), append(self, spending))
    mine.touch()
    while not other.exists():
        time.sleep(0.001)
    for number in range(8):
        with suppress(BudgetError):
            ledger.spend([f"set {number}"], Guarantee.of(1.0, DELTA), "race")
            won.open("a").write(f"{number}\n")


def test_two_processes_cannot_both_spend_the_last_epsilon(ledger, tmp_path):
    """Eight data sets, of each of which both want all of the budget, and take their time between look and write."""
    one, two, won = (tmp_path / name for name in ("one", "two", "won"))
    children = [forked(spend_all, ledger.path, *order, won) for order in ((one, two), (two, one))]
    assert [exit_code(child) for child in children] == [0, 0]
    assert sorted(map(int, won.read_text().split())) == list(range(8))
    assert len(ledger.spendings()) == 8


def test_two_names_of_one_ledger_share_its_lock(ledger, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link"
    link.symlink_to(ledger.path)
    Ledger(link).spend(["a"], Guarantee.of(0.5, DELTA), "test")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["link"]
    assert len(ledger.spendings()) == 1


def test_a_planned_ledger_is_made_by_its_first_spending(tmp_path):
    path = tmp_path / "planned"
    planned = PlannedLedger(path, 1, DELTA)
    assert planned.left(["a"]) == pytest.approx(1)
    with pytest.raises(BudgetError, match="after 0 releases"):
        planned.spend(["a"], Guarantee.of(2, DELTA), "test")
    assert not path.exists()
    planned.spend(["a"], Guarantee.of(0.5, DELTA), "test")
    PlannedLedger(path, 1, DELTA).spend(["a"], Guarantee.of(0.1, DELTA), "test")  # another process had the same plan
    assert len(Ledger(path).spendings(["a"])) == 2
    with pytest.raises(BudgetError, match="has a budget of epsilon 1 by now"):
        PlannedLedger(path, 3, DELTA).spend(["a"], Guarantee.of(0.5, DELTA), "test")


def test_waiting_for_a_ledger_that_another_process_holds_is_told(ledger, monkeypatch):
    held, said = filelock.FileLock(lock_of(ledger.path)), []

    def told(message, **_):
        said.append(message)
        held.release()

    monkeypatch.setattr(locks, "SILENT_SECONDS", 0.05)
    monkeypatch.setattr(locks.warnings, "warn", told)
    held.acquire()
    ledger.spend(["a"], Guarantee.of(0.5, DELTA), "test")
    assert said == [f"another process holds {ledger.path}: waiting until it is done"]
    assert len(ledger.spendings()) == 1


def test_a_last_line_whose_end_an_editor_took_away_still_counts(ledger):
    release_of(records(), 0.6, ledger)
    ledger.path.write_bytes(ledger.path.read_bytes().rstrip())
    with pytest.raises(BudgetError, match=r"after 1 release$"):
        release_of(records(), 0.9, ledger)
    release_of(records(1), 0.5, ledger)
    assert len(ledger.spendings()) == 2
    with ledger.path.open("a") as file:
        file.write("{}\n")
    with pytest.raises(DataError, match="damaged in line 4"):
        ledger.spendings()


def test_a_line_that_was_cut_off_was_never_released_on_and_is_written_over(ledger):
    release_of(records(), 0.5, ledger)
    with ledger.path.open("ab") as file:
        file.write(b'{"data": ["abc"], "mu": 0.')
    assert len(Ledger(ledger.path).spendings()) == 1
    release_of(records(1), 0.5, ledger)
    assert [line.purpose for line in ledger.spendings()] == ["private sketch"] * 2
    assert ledger.path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a finc-eval ledger"),
        (b"notes\n", "is not a finc-eval ledger"),
        (b'{"kind": "other"}\n', "is not a finc-eval ledger"),
        (HEADER + b"}\n", "layout None"),
        (HEADER + b', "schema": 1}\n', "layout 1, this version reads 3"),
        (HEADER + b', "schema": 3}\n', "damaged in line 1"),
        (_line({**HEAD, "epsilon": "1"}), "damaged in line 1"),
        (_line({**HEAD, "delta": 2}), "between 0 and 1"),
    ],
)
def test_another_file_is_no_ledger(tmp_path, content, message):
    path = tmp_path / "l"
    path.write_bytes(content)
    with pytest.raises((DataError, UsageError), match=message):
        Ledger(path)


def test_a_ledger_that_cannot_be_read_releases_nothing(tmp_path):
    with pytest.raises(DataError, match="is a folder, not a file"):
        Ledger(tmp_path)


def test_a_spending_is_of_some_data_set(ledger):
    with pytest.raises(UsageError, match="identifies its data set"):
        ledger.spend([], Guarantee.of(0.5, DELTA), "test")


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"[1]",
        b"{}",
        b'{"data": ["a"], "mu": -1, "purpose": ""}',
        b'{"data": ["a"], "mu": NaN, "purpose": ""}',
    ],
)
def test_nothing_is_released_on_the_word_of_a_damaged_ledger(ledger, line):
    ledger.path.write_bytes(ledger.path.read_bytes() + line + b"\n")
    with pytest.raises(DataError, match="damaged in line 2"):
        release_of(records(), 0.5, ledger)


def test_a_budget_is_set_once(ledger):
    with pytest.raises(BudgetError, match="set once"):
        Ledger.create(ledger.path, 100.0, DELTA)
    assert Ledger(ledger.path).budget == Guarantee.of(1.0, DELTA)
    with pytest.raises(DataError, match="does not exist"):
        Ledger(Path(ledger.path.parent / "other"))


def test_a_ledger_says_what_is_spent_and_left(ledger):
    release_of(records(), 0.5, ledger, name="ward 7")
    release_of(records(1)[:30], 0.25, ledger)
    release_of(records(), 0.5, ledger)
    first, second = ledger.accounts()
    assert "ward 7" in first.data
    assert len(first.releases) == 2
    assert first.epsilon_spent == pytest.approx(epsilon_of(2**0.5 * mu_of(0.5, DELTA), DELTA))
    assert second.epsilon_left == pytest.approx(ledger.left(second.data))
    assert [set(json.loads(json.dumps(plain(one)))) for one in (first, second)] == [
        {"data", "releases", "epsilon_spent", "epsilon_left"}
    ] * 2


def two_releases(ledger):
    for name in ("a", "b"):
        ledger.spend([name], Guarantee.of(0.5, DELTA), "test")
    return ledger.path.read_bytes().splitlines(keepends=True)


def test_the_first_line_counts_the_releases(ledger):
    first, *lines = two_releases(ledger)
    assert json.loads(first)["releases"] == "0000000002"
    assert [json.loads(line)["data"] for line in lines] == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "has lost lines"),
        (lambda lines: [lines[0], lines[1], lines[2][:-20]], "has lost lines"),
        (lambda lines: [lines[0], lines[2], lines[1]], "damaged in line 2"),
        (lambda lines: [lines[0], lines[2]], "damaged in line 2"),
        (lambda lines: [lines[0], lines[1].replace(b'"a"', b'"c"'), lines[2]], "damaged in line 2"),
        (lambda lines: [lines[0].replace(b'"epsilon": 1.0', b'"epsilon": 9.0'), *lines[1:]], "damaged in line 2"),
        (lambda lines: [lines[0].replace(b'"0000000002"', b'"0000000000"'), *lines[1:]], "damaged in line 1"),
    ],
)
def test_a_ledger_that_lost_or_changed_a_line_gives_no_budget_back(ledger, change, message):
    ledger.path.write_bytes(b"".join(change(two_releases(ledger))))
    with pytest.raises(DataError, match=message):
        Ledger(ledger.path)


def test_a_kill_between_a_line_and_its_number_loses_nothing(ledger, tmp_path):
    first = ledger.path.read_bytes()
    lines = two_releases(ledger)[1:]
    ledger.path.write_bytes(b"".join([first, *lines]))
    assert len(Ledger(ledger.path).spendings()) == 2
    ledger.spend(["c"], Guarantee.of(0.5, DELTA), "test")
    assert json.loads(ledger.path.read_bytes().splitlines()[0])["releases"] == "0000000003"


def test_a_last_line_that_is_no_release_is_written_over(ledger):
    two_releases(ledger)
    with ledger.path.open("ab") as file:
        file.write(b"{}")
    ledger.spend(["c"], Guarantee.of(0.5, DELTA), "test")
    assert [line.data for line in ledger.spendings()] == [("a",), ("b",), ("c",)]
