"""A name at which finc-eval makes a file may be taken by a link: the link goes, and what it leads to stays as it is."""

import os
import re
import shutil
import signal
import stat
from pathlib import Path

import numpy as np
import pytest
from _forks import killed_after
from _guarded import SPECIAL, guarded, is_sentence
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli import output
from finc_eval.cli.app import app
from finc_eval.cli.output import with_end
from finc_eval.core.doors import copy_file, create_file, create_text, private_folder
from finc_eval.core.errors import DataError
from finc_eval.core.files.writing import new_file
from finc_eval.core.kept.folder import new_part
from finc_eval.core.storage import after_other_writers_of, only_writer_of, reserve, write_text, write_whole
from finc_eval.demo.planted import LabeledSet
from finc_eval.demo.run import run_demo
from finc_eval.embeddings.stored.journal import Journal, Title
from finc_eval.embeddings.writer import remove_remains
from finc_eval.extractors import fetch as download
from finc_eval.privacy import Guarantee, Ledger

TITLE = Title("k" * 64, "", 4, 2)

KEPT = b"of somebody else"


def hold(path):
    with reserve(path, 100) as write:
        write(lambda target: write_text(target, "paid"))


def journal(path):
    made = Journal.resume(path, TITLE) or Journal.create(path, TITLE)
    made.close()


def spend(path):
    Ledger.create(path, epsilon=1, delta=1e-5)


def stored(path):
    with new_file(path, "test", 1) as file:
        file.array("a", np.zeros(3))


def lock(path):
    with only_writer_of(path):
        pass


def fetch(path):
    source = path.with_name("source")
    source.write_bytes(b"weights")
    download.download(source.as_uri(), path, lambda *_: None, "fetch")


def demo(path):
    LabeledSet(np.zeros((1, 8, 8, 3), np.uint8), ["one"]).write(path)


CREATIONS = {
    "a text": (lambda path: write_text(path, "x"), "{name}"),
    "a text's temporary file": (lambda path: write_text(path, "x"), ".{name}.{pid}.tmp"),
    "an .h5 file": (stored, "{name}"),
    "an .h5 file's temporary file": (stored, ".{name}.{pid}.tmp"),
    "room": (hold, ".{name}.room"),
    "the temporary file of paid content": (hold, ".{name}.{pid}.tmp"),
    "paid content": (hold, "{name}"),
    "a journal": (journal, "{name}"),
    "a journal's new file": (journal, ".{name}.new"),
    "a ledger's temporary file": (spend, ".{name}.{pid}.tmp"),
    "a download": (fetch, "{name}"),
    "the note of a download": (fetch, "{name}.json"),
    "a picture of the demo": (demo, "{name}/one/0000.png"),
}
"""What makes files at a path, and the name at which a link waits."""

VICTIMS = ("a file", "nothing", "a file by its second name", "a pipe")


def lay(trap, victim, kind):
    """Let a name lead to something of somebody else."""
    trap.parent.mkdir(parents=True, exist_ok=True)
    if kind == "a pipe":
        os.mkfifo(victim)
    elif kind != "nothing":
        victim.write_bytes(KEPT)
    if kind == "a file by its second name":
        os.link(victim, trap)
    else:
        trap.symlink_to(victim)


def is_untouched(victim, kind):
    if kind == "nothing":
        return not victim.exists()
    if kind == "a pipe":
        return stat.S_ISFIFO(victim.stat().st_mode)
    return victim.read_bytes() == KEPT


@pytest.mark.one_of_each("what", "kind")
@pytest.mark.parametrize("kind", VICTIMS)
@pytest.mark.parametrize("what", CREATIONS)
def test_a_link_at_the_name_of_a_new_file_is_not_followed(tmp_path, what, kind):
    make, name = CREATIONS[what]
    folder, victim = tmp_path / "shared", tmp_path / "victim"
    folder.mkdir()
    trap = folder / name.format(name="made", pid=os.getpid())
    lay(trap, victim, kind)
    try:
        make(folder / "made")
    except fe.FincEvalError:
        assert what in ("paid content", "an .h5 file") and kind != "nothing", "only what is there is refused"
        assert is_untouched(victim, kind)
        return
    assert is_untouched(victim, kind)
    assert not trap.is_symlink()
    if trap.exists():
        assert not victim.exists() or not trap.samefile(victim)


LOCKS = {
    "a link to nothing": lambda path, victim: path.symlink_to(victim),
    "a link to a file": lambda path, victim: (victim.write_bytes(KEPT), path.symlink_to(victim)),
    "a pipe": lambda path, victim: os.mkfifo(path),
    "a socket": lambda path, victim: SPECIAL["socket"](path),
    "a folder": lambda path, victim: path.mkdir(),
    "an endless device": lambda path, victim: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("holding", [only_writer_of, after_other_writers_of], ids=["at once", "after a wait"])
@pytest.mark.parametrize("what", LOCKS)
def test_what_lies_in_the_place_of_a_lock_is_refused_and_left_alone(tmp_path, what, holding):
    victim, lock_file = tmp_path / "victim", tmp_path / ".x.lock"
    LOCKS[what](lock_file, victim)
    there = victim.exists()
    with pytest.raises((DataError, OSError)) as refused, holding(tmp_path / "x"):
        pass
    assert victim.exists() == there and (not there or victim.read_bytes() == KEPT)
    assert os.path.lexists(lock_file)
    if "socket" not in what and "folder" not in what:  # these are told by the error of the system
        assert "in the place of a lock: remove it, and run the same command again" in str(refused.value)
    with pytest.raises(DataError):
        spend(tmp_path / "x")  # a verb tells it in one sentence


def test_a_link_that_is_laid_after_the_look_makes_no_lock_behind_it(tmp_path, monkeypatch):
    (tmp_path / ".x.lock").symlink_to(tmp_path / "victim")
    monkeypatch.setattr(Path, "is_symlink", lambda self: False)
    with pytest.raises(OSError, match="symbolic links"), only_writer_of(tmp_path / "x"):
        pass
    assert not (tmp_path / "victim").exists()


def test_unfinished_embeddings_behind_a_link_are_not_gone_on_with(tmp_path):
    """They are of the same samples, and not in the folder that the caller named."""
    journal(tmp_path / "victim")
    with (tmp_path / "victim").open("ab") as file:
        file.write(b"a record that was cut off")
    before = (tmp_path / "victim").read_bytes()
    (tmp_path / "x.part").symlink_to("victim")
    journal(tmp_path / "x.part")
    assert (tmp_path / "victim").read_bytes() == before
    assert not (tmp_path / "x.part").is_symlink()


VERBS = {
    "sketch": ("extract sketch ref.npy --features 20 --out s.h5 --quiet", ["s.h5", ".s.h5.{pid}.tmp"]),
    "compare": (
        "compare --gen gen.npy --ref ref.npy --features 20 --out out --quiet",
        ["out/comparison.h5", "out/comparison.json", "out/comparison.html", "out/.comparison.json.{pid}.tmp"],
    ),
    "extract": (
        "extract set --extractor pixels --out g.h5 --quiet",
        ["g.h5.part", ".g.h5.new", ".g.h5.part.new", "g.h5"],
    ),
    "private-sketch": (
        "private sketch release --data ref.npy --public gen.npy --dims 3 --epsilon 1 --ledger new --budget 3 "
        "--out p.h5 --quiet",
        [".p.h5.room", ".p.h5.{pid}.tmp", ".new.{pid}.tmp", "p.h5"],
    ),
    "kahm": ("kahm fit labeled.npz --out k.h5 --quiet", ["k.h5", ".k.h5.{pid}.tmp"]),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder, random = tmp_path_factory.mktemp("home"), np.random.default_rng(0)
    for name in ("gen", "ref"):
        np.save(folder / f"{name}.npy", random.standard_normal((60, 4)).astype(np.float32))
    np.savez(folder / "labeled.npz", embeddings=np.load(folder / "gen.npy"), labels=["a", "b"] * 30)
    (folder / "set").mkdir()
    for number in range(4):
        Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(folder / "set" / f"{number}.png")
    return folder


@pytest.mark.one_of_each("verb", "victim_is_there")
@pytest.mark.parametrize("victim_is_there", [True, False], ids=["to a file", "to nothing"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_writes_through_no_link_in_the_folder_of_its_output(home, tmp_path, verb, victim_is_there):
    words, names = VERBS[verb]
    place, victims = tmp_path / "place", tmp_path / "victims"
    shutil.copytree(home, place)
    victims.mkdir()
    process = os.getpid() + 1  # the likely number of the process: one that does not match is not less of a link
    for number, name in enumerate(names):
        trap, victim = place / name.format(pid=process), victims / str(number)
        trap.parent.mkdir(exist_ok=True)
        if victim_is_there:
            victim.write_bytes(KEPT)
        trap.symlink_to(victim)
    code, text = guarded(words, place, tmp_path / "told", seconds=60)
    assert code == 0 or (code == 3 and is_sentence(text)), text
    assert [one.read_bytes() for one in sorted(victims.iterdir())] == [KEPT] * (len(names) * victim_is_there)


DEFAULT_FOLDERS = (
    "demo",
    "demo --prompts",
    "compare --gen gen.npy --ref ref.npy",
    "compare --gen set --ref set --extractor pixels --extractor efficientnet-lite0",
    "compare methods --gen gen.npy --ref ref.npy",
    "compare sweep --gen gen.npy --ref ref.npy --parameter sigma",
    "compare changes --old old.h5 --new old.h5",
    "kinds gen.npy --ref ref.npy",
    "evaluate --gen gen.npy --ref ref.npy",
    "leaderboard a=gen.npy b=gen.npy --ref ref.npy",
    "audit --gen gen.npy --train ref.npy --holdout ref.npy",
    "gate --gen gen.npy --baseline gen.npy --ref ref.npy",
)
"""Commands whose results go to a folder in reports/, because they name none."""


def link_at_the_folder(victim, monkeypatch):
    def linked(*words):
        folder = with_end(*words)
        folder.parent.mkdir()
        folder.symlink_to(victim)
        return folder

    monkeypatch.setattr(output, "with_end", linked)


LINKED_FOLDERS = {
    "reports to a folder": lambda victim, monkeypatch: Path("reports").symlink_to(victim),
    "reports to a folder by a relative path": lambda victim, monkeypatch: Path("reports").symlink_to("../victim"),
    "reports to nothing": lambda victim, monkeypatch: Path("reports").symlink_to(victim / "new"),
    "reports to a folder of this place": lambda victim, monkeypatch: Path("reports").symlink_to("set"),
    "the folder in reports": link_at_the_folder,
}


@pytest.fixture(scope="module")
def place_of_work(home, tmp_path_factory):
    folder = shutil.copytree(home, tmp_path_factory.mktemp("work") / "place")
    fe.compare(folder / "gen.npy", folder / "ref.npy", features=20, modes=1).save(folder / "old.h5")
    (folder / "gate.toml").write_text("[kinds]\nlose = 0.5\n")
    return folder


@pytest.mark.one_of_each("words", "link")
@pytest.mark.parametrize("link", LINKED_FOLDERS)
@pytest.mark.parametrize("words", DEFAULT_FOLDERS)
def test_a_verb_makes_no_folder_of_results_through_a_link(place_of_work, tmp_path, monkeypatch, words, link):
    place, victim = shutil.copytree(place_of_work, tmp_path / "place"), tmp_path / "victim"
    victim.mkdir()
    monkeypatch.chdir(place)
    LINKED_FOLDERS[link](victim, monkeypatch)
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 3 and "is a link, and nothing is written through it" in " ".join(done.output.split())
    made = {one.name for one in tmp_path.rglob("*")} - {one.name for one in place_of_work.rglob("*")}
    assert made <= {"place", "victim", "reports", *(one.name for one in place.glob("reports/*"))}
    assert list(victim.iterdir()) == []


def test_every_verb_with_a_default_folder_of_results_is_tried():
    """Others return nothing without --out, or write to the folder of a board, which their user names."""
    code = "".join(path.read_text() for path in (Path(output.__file__).parent / "verbs").glob("*.py"))
    made = re.findall(r'(?<!None else )output_folder\(\s*f?"([a-z]+)[^"]*"(?!.*out or board)', code)
    assert len(made) == 10
    assert [verb for verb in made if not any(verb in words.split()[:2] for words in DEFAULT_FOLDERS)] == []


@pytest.mark.one_of_each
@pytest.mark.parametrize("link", ["samples", "samples/gen", "samples/ref", "samples/gen/grey-7"])
def test_the_demo_writes_no_pictures_through_a_link_in_its_folder(tmp_path, link):
    (tmp_path / "victim").mkdir()
    trap = tmp_path / "place" / "reports" / "demo" / link
    trap.parent.mkdir(parents=True)
    trap.symlink_to(tmp_path / "victim")
    with pytest.raises(DataError, match="is a link, and nothing is written through it"):
        run_demo(tmp_path / "place" / "reports" / "demo", fe.compare)
    assert list((tmp_path / "victim").iterdir()) == []


def test_an_output_that_is_a_link_is_replaced_by_a_file(tmp_path):
    (tmp_path / "old").write_text("kept")
    (tmp_path / "page.html").symlink_to("old")
    write_text(tmp_path / "page.html", "new")
    assert (tmp_path / "old").read_text() == "kept"
    assert not (tmp_path / "page.html").is_symlink() and (tmp_path / "page.html").read_text() == "new"


def test_a_folder_that_is_a_link_is_the_choice_of_its_caller(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    write_text(tmp_path / "out" / "x", "whole")
    assert (tmp_path / "real" / "x").read_text() == "whole"


def test_a_ledger_behind_a_link_is_the_file_itself(tmp_path):
    """The ledger that a link leads to is one that finc-eval made: its budget must not be had twice."""
    Ledger.create(tmp_path / "real", epsilon=1, delta=1e-5)
    (tmp_path / "link").symlink_to("real")
    Ledger(tmp_path / "link").spend(["x"], Guarantee.of(0.5, 1e-5), purpose="test")
    assert len(Ledger(tmp_path / "real").spendings()) == 1 and (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("names", [2, 3])
def test_a_ledger_with_several_names_spends_nothing(tmp_path, names):
    """Each name has a lock of its own: two processes could both spend the last of a budget."""
    ledgers = [tmp_path / str(number) / "ledger" for number in range(names)]
    for one in ledgers:
        one.parent.mkdir()
    Ledger.create(ledgers[0], epsilon=1, delta=1e-5)
    for one in ledgers[1:]:
        os.link(ledgers[0], one)
    for one in ledgers:
        with pytest.raises(DataError, match=rf"has {names} names \(hard links\).*: replace it by a copy of itself"):
            Ledger(one).spend(["x"], Guarantee.of(0.5, 1e-5), purpose="test")
        assert Ledger(one).spendings() == ()
    for one in ledgers[1:]:
        one.unlink()
    Ledger(ledgers[0]).spend(["x"], Guarantee.of(0.5, 1e-5), purpose="test")
    assert len(Ledger(ledgers[0]).spendings()) == 1


def test_leftovers_that_are_links_are_removed_without_what_they_lead_to(tmp_path):
    (tmp_path / "victim").write_bytes(KEPT)
    for number in (5, 123456789):
        (tmp_path / f".x.{number}.tmp").symlink_to("victim")
    write_text(tmp_path / "x", "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["victim", "x"]
    assert (tmp_path / "victim").read_bytes() == KEPT


WORK = {
    "merge": lambda: fe.merge(["s.1-of-2.h5", "s.2-of-2.h5"], "m.h5"),
    "extract": lambda: fe.extract("set", "pixels", "m.h5"),
}


@pytest.mark.long
@pytest.mark.parametrize("what", ["merge", pytest.param("extract", marks=pytest.mark.long)])
def test_a_repetition_leaves_nothing_of_a_kill_at_any_step(home, tmp_path, what, monkeypatch):
    """A kill after the new file is in place leaves its lock, and the repetition has nothing to write."""
    place = shutil.copytree(home, tmp_path / "place")
    monkeypatch.chdir(place)
    for number in (1, 2):
        fe.extract("set", "pixels", "s.h5", shard=f"{number}/2").close()
    before = {path.name for path in place.iterdir()}
    for count in range(40):
        ended = killed_after(count, WORK[what])
        WORK[what]().close()
        assert {path.name for path in place.iterdir()} - before == {"m.h5"}, count
        (place / "m.h5").unlink()
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    else:
        pytest.fail("the steps never ended")
    assert count > 3


def test_the_files_of_a_living_writer_stay(tmp_path):
    (tmp_path / "m.h5.part").write_bytes(b"x")
    with only_writer_of(tmp_path / "m.h5"):
        remove_remains(tmp_path / "m.h5")
        assert (tmp_path / "m.h5.part").exists()
    remove_remains(tmp_path / "m.h5")
    assert not (tmp_path / "m.h5.part").exists()


# Permissions


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o277], ids=["umask 000", "umask 022", "umask 277"])
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def test_a_ledger_is_for_its_owner_alone(tmp_path, umask):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1, delta=1e-5)
    assert mode(ledger.path) == 0o600
    ledger.spend(["x"], Guarantee.of(0.5, 1e-5), purpose="test")
    assert mode(ledger.path) == 0o600


def test_folders_that_are_private_are_for_their_owner_alone(tmp_path, umask):
    tmp_path.chmod(0o755)
    private_folder(tmp_path / "a" / "b")
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700
    assert mode(tmp_path) == 0o755  # it was there


def test_copies_of_remote_objects_are_for_their_owner_alone(s3, umask):
    from _object_store import BUCKET

    from finc_eval.core.files.on_disk import on_disk
    from finc_eval.core.places import root

    with s3.files.open(f"{BUCKET}/x.txt", "wb") as file:
        file.write(b"private")
    copy = on_disk(f"s3://{BUCKET}/x.txt")
    assert copy.read_bytes() == b"private"
    assert mode(root()) == mode(copy.parent) == 0o700
    assert mode(copy) == 0o600
    write_text(f"s3://{BUCKET}/y.txt", "x")
    assert mode(root() / "out") == 0o700


def test_a_baseline_is_for_its_owner_alone(tmp_path):
    with new_part(tmp_path / "0001", "it stays") as place:
        (place / "gen.npz").write_bytes(b"x")
    assert mode(tmp_path / "0001") == 0o700 and mode(tmp_path / "0001" / "gen.npz") == 0o600


def test_other_files_have_the_permissions_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "x", "y")
    finally:
        os.umask(before)
    assert mode(tmp_path / "x") == 0o640


def test_created_files_are_new_and_can_be_read_back(tmp_path):
    (tmp_path / "x").write_bytes(b"old and long")
    with create_file(tmp_path / "x") as file:
        file.write(b"new")
        file.seek(0)
        assert file.read() == b"new"
    with create_text(tmp_path / "y") as text:
        text.write("a\r\nb\n")
    assert (tmp_path / "x").read_bytes() == b"new" and (tmp_path / "y").read_bytes() == b"a\r\nb\n"
    copy_file(tmp_path / "x", tmp_path / "y")
    assert (tmp_path / "y").read_bytes() == b"new"


def test_a_file_that_appears_between_two_steps_is_not_opened(tmp_path, monkeypatch):
    """Somebody may lay the link again after the old one is gone: then nothing is written at all."""
    (tmp_path / "victim").write_bytes(KEPT)
    real = Path.unlink

    def laid_again(self, missing_ok=False):
        real(self, missing_ok)
        if self.name == "x":
            self.symlink_to("victim")

    monkeypatch.setattr(Path, "unlink", laid_again)
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "x")
    assert (tmp_path / "victim").read_bytes() == KEPT


def test_whole_files_are_made_at_a_name_without_a_file(tmp_path):
    with write_whole(tmp_path / "x") as temporary:
        assert not os.path.lexists(temporary)
        with create_file(temporary) as file:
            file.write(b"x")
    assert (tmp_path / "x").read_bytes() == b"x"
