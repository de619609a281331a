"""Two processes that write to one place at once: the file is of one of them, whole, and the other one is told."""

import os
import shutil

import numpy as np
import pytest
from _guarded import guarded, is_sentence, load_all
from PIL import Image

import finc_eval as fe
from finc_eval.gates.baseline import History

EXTRACT = "extract set --extractor pixels --out o.h5 --quiet"
OTHER = "extract other --extractor pixels --out o.h5 --quiet"
SAME = "extract set --extractor pixels --quiet"
MERGE = "extract merge s.1-of-2.h5 s.2-of-2.h5 --out o.h5 --quiet"
COMPARE = "compare --gen gen.npy --ref ref.npy --features 20 --out out --quiet"
ADD = "leaderboard add {} {}=gen.npy --ref ref.npy --metrics kid --quiet"
GATE = "gate --promote --reason x --gen {} --baseline history --ref ref.npy --policy gate.toml --out {} --quiet"


def rows(place):
    """Whether the file holds the embeddings of one of the sets."""
    with fe.EmbeddingCache(place / "o.h5") as made:
        known = [fe.EmbeddingCache(place / f"{name}.h5")[:].tobytes() for name in ("set", "other")]
        return made.damage() is None and made[:].tobytes() in known


def caches(place):
    return all(fe.EmbeddingCache(path).damage() is None for path in (place / "cache").glob("*.h5"))


def models(*names):
    return lambda place: {one.name for one in fe.Board(place / "board").entries()} == {"one", *names}


def bundles(place):
    return len(History.open(place / "history").bundles) == 2


PAIRS = {
    "the same set": (EXTRACT, EXTRACT, rows),
    "the same set, by its key": (SAME, SAME, caches),
    "two sets": (EXTRACT, OTHER, rows),
    "a set and its shards": (EXTRACT, MERGE, rows),
    "shards": (MERGE, MERGE, rows),
    "a comparison": (COMPARE, COMPARE, lambda place: fe.load(place / "out" / "comparison.h5").gen.n == 60),
    "one model": (ADD.format("board", "two"), ADD.format("board", "two"), models("two")),
    "two models": (ADD.format("board", "two"), ADD.format("board", "three"), models("two", "three")),
    "a model and its removal": (ADD.format("board", "two"), "leaderboard remove board one", lambda place: True),
    "a new board": (
        ADD.format("new", "two"),
        ADD.format("new", "three"),
        lambda place: {one.name for one in fe.Board(place / "new").entries()} == {"two", "three"},
    ),
    "one release": (GATE.format("new.npy", "o1"), GATE.format("new.npy", "o2"), bundles),
    "two releases": (GATE.format("new.npy", "o1"), GATE.format("ref.npy", "o2"), bundles),
}
"""Two commands, and what holds when both have ended."""

QUICK = ("two models",)


EXTRACTED = tuple(f"extract {name} --extractor pixels --out {name}.h5 --quiet" for name in ("set", "other"))
SHARDED = tuple(f"extract set --extractor pixels --out s.h5 --shard {number}/2 --quiet" for number in (1, 2))
FIRST = "gate --first --gen gen.npy --baseline history --ref ref.npy --policy gate.toml --out first --quiet"
BEFORE = {"extract ": EXTRACTED, "merge": SHARDED, " board ": (ADD.format("board", "one"),), "history": (FIRST,)}
"""Commands that another has before it, by a part of its words."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder, random = tmp_path_factory.mktemp("home"), np.random.default_rng(0)
    for name in ("gen", "ref", "new"):
        np.save(folder / f"{name}.npy", random.standard_normal((60, 4)).astype(np.float32))
    for name in ("set", "other"):
        (folder / name).mkdir()
        for number in range(6):
            pixels = random.integers(0, 256, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    (folder / "gate.toml").write_text("[kinds]\nlose = 0.5\nmin_share = 0.1\n")
    load_all()
    done = set()

    def prepared(commands):
        needed = [words for part, before in BEFORE.items() if part in commands for words in before]
        for words in [one for one in needed if one not in done]:
            code, text = guarded(words, folder, folder.with_name("told"), seconds=60)
            assert code in (0, 1, 2), text
            done.add(words)
        return folder

    return prepared


def both(first, second, place):
    """Run two commands at once; return the exit code and the output of each."""
    child = os.fork()
    if not child:
        try:
            code, _ = guarded(first, place, place / "told1", seconds=60)
            os._exit(code if code >= 0 else 70)
        finally:
            os._exit(70)
    second_ended = guarded(second, place, place / "told2", seconds=60)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return (code, (place / "told1").read_text()), second_ended


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("pair", [pytest.param(pair, marks=[pytest.mark.long] * (pair not in QUICK)) for pair in PAIRS])
def test_of_two_writers_one_is_done_and_the_other_is_told(home, tmp_path, pair):
    first, second, holds = PAIRS[pair]
    place = shutil.copytree(home(f"{first} {second}"), tmp_path / "place")
    ended = both(first, second, place)
    assert all(code in (0, 1, 2) or (code == 3 and is_sentence(text.splitlines()[-1])) for code, text in ended), ended
    assert any(code != 3 for code, _ in ended), ended
    assert holds(place), ended
    left = [path.name for path in place.rglob("*") if path.name.startswith(".") or path.suffix in (".part", ".tmp")]
    assert left == []
