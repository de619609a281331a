"""Budget that was spent for nothing: every release says so, whatever ended it."""

import numpy as np
import pytest
import torch
from _quick import quick_releases  # noqa: F401
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError
from finc_eval.privacy import Category, Guarantee, Ledger, PublicTransform, Table
from finc_eval.private.dp import ledger as ledgers
from finc_eval.private.dp.losses import note_losses
from finc_eval.private.reference import release as releases
from finc_eval.private.synthesis import dp_hp
from finc_eval.private.synthesis import synthesize as synthesis
from finc_eval.private.synthesis.files import write_arrays

DELTA = 1e-5
TABLE = Table((Category("smokes", ("no", "yes")),), None)
DESCRIPTION = 'columns = [{name = "smokes", values = ["no", "yes"]}]'
SMOKES = {"smokes": np.array(["no", "yes"] * 50)}
IMAGES = np.random.default_rng(0).integers(0, 255, (30, 8, 8), np.uint8)
LOST = "epsilon 0.5 is spent in {}, and nothing came of it: another run spends it again"

RELEASES = {
    "sketch": lambda ledger: fe.privacy.release_sketch(
        np.random.default_rng(0).normal(size=(50, 4)),
        public=PublicTransform.constant(4, length_scale=2, radius=3),
        epsilon=0.5,
        ledger=ledger,
    ),
    "table": lambda ledger: fe.privacy.synthesize_table(SMOKES, TABLE, epsilon=0.5, steps=2, ledger=ledger),
    "images": lambda ledger: fe.privacy.synthesize_images(IMAGES, None, epsilon=0.5, steps=2, ledger=ledger),
}
LATE = {"sketch": (releases, "sampling_variance"), "table": (synthesis, "_fit"), "images": (synthesis, "_fit")}
EARLY = {"sketch": (releases, "_mean"), "table": (dp_hp, "_sums"), "images": (dp_hp, "_sums")}


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", 3, DELTA)


def ended_by(error):
    def end(*given, **options):
        raise error

    return end


@pytest.mark.one_of_each("release", "error")
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), DataError("full"), OSError("gone"), torch.OutOfMemoryError(), MemoryError()],
    ids=repr,
)
def test_what_ends_a_release_after_its_spending_has_a_note_of_the_loss(ledger, monkeypatch, release, error):
    monkeypatch.setattr(*LATE[release], ended_by(error))
    error.__notes__ = []
    with pytest.raises(type(error)) as caught:
        RELEASES[release](ledger.path)
    assert caught.value.__notes__ == [LOST.format(ledger.path)]
    assert len(ledger.spendings()) == 1


@pytest.mark.parametrize("release", RELEASES)
def test_what_ends_a_release_before_its_spending_has_no_note(ledger, monkeypatch, release):
    monkeypatch.setattr(*EARLY[release], ended_by(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt) as caught:
        RELEASES[release](ledger.path)
    assert not getattr(caught.value, "__notes__", [])
    assert not ledger.spendings()


@pytest.mark.parametrize(("written", "notes"), [(False, 0), (True, 1)])
def test_an_interruption_of_the_ledgers_write_has_a_note_exactly_if_the_line_is_there(
    ledger, monkeypatch, written, notes
):
    ledger.spend(["a"], Guarantee.of(0.5, DELTA), "equal")  # an equal line before it does not count
    write = ledgers.Ledger._append

    def interrupted(self, spending):
        if written:
            write(self, spending)
        raise KeyboardInterrupt

    monkeypatch.setattr(ledgers.Ledger, "_append", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught, note_losses():
        ledger.spend(["a"], Guarantee.of(0.5, DELTA), "equal")
    assert len(getattr(caught.value, "__notes__", [])) == notes


def test_a_loss_is_told_once_and_only_until_the_output_is_written(ledger):
    with pytest.raises(DataError) as caught, note_losses():
        RELEASES["table"](ledger)
        raise DataError("no room")
    assert caught.value.__notes__ == [LOST.format(ledger.path)]
    with pytest.raises(DataError) as caught, note_losses() as done:
        RELEASES["sketch"](ledger)
        done()
        raise DataError("no room")
    assert not getattr(caught.value, "__notes__", [])


@pytest.fixture
def commands(tmp_path):
    write_arrays(tmp_path / "data.csv", SMOKES)
    (tmp_path / "table.toml").write_text(DESCRIPTION)
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(50, 4)))
    spending = ["--ledger", tmp_path / "ledger", "--budget", 3, "--epsilon", 0.5]
    scales = ["--length-scale", 2, "--radius", 3, "--dims", 4, "--out", tmp_path / "made.h5"]
    table = ["--table", tmp_path / "table.toml", "--steps", 2, "--out", tmp_path / "made.csv"]
    return {
        "sketch": ["private", "sketch", "release", "--data", tmp_path / "rows.npy", *scales, *spending],
        "table": ["private", "generate", "--data", tmp_path / "data.csv", *table, *spending],
    }


@pytest.mark.parametrize("command", ["sketch", "table"])
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [(KeyboardInterrupt(), 130, "interrupted"), (DataError("too much"), 3, "too much")],
    ids=["interrupted", "error"],
)
def test_a_command_says_what_it_spent_for_nothing(tmp_path, monkeypatch, commands, command, error, code, said):
    error.__notes__ = []
    monkeypatch.setattr(*LATE[command], ended_by(error))
    ended = CliRunner().invoke(app, [*map(str, commands[command])])
    assert ended.exit_code == code
    assert f"finc-eval: {said}; {LOST.format(tmp_path / 'ledger')}" in " ".join(ended.stderr.split())
    assert not [*tmp_path.glob("made.*")]


def test_a_command_whose_page_is_lost_and_whose_data_are_there_speaks_of_no_loss(tmp_path, monkeypatch, commands):
    monkeypatch.setattr("finc_eval.cli.output.TerminalOutput.write", ended_by(KeyboardInterrupt()))
    ended = CliRunner().invoke(app, [*map(str, commands["table"])])
    assert ended.exit_code == 130
    assert "nothing came" not in ended.stderr
    assert (tmp_path / "made.csv").exists()
