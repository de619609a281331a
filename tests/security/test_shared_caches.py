"""Somebody else may write to the folder of caches: what is planted there is never written through, waited for or read
as embeddings, unless it is a whole cache of the same key."""

import os
import re
import shutil

import numpy as np
import pytest
from _guarded import SPECIAL, guarded, is_sentence, load_all
from PIL import Image

import finc_eval as fe

KEPT = b"of somebody else"

EXTRACT = "extract set --extractor pixels --quiet"

EMPTY = {
    "unfinished embeddings that are a link": lambda cache, key, victim: (cache / f"{key}.part").symlink_to(victim),
    "unfinished embeddings of noise": lambda cache, key, victim: (cache / f"{key}.part").write_bytes(os.urandom(3000)),
    "unfinished embeddings that are a pipe": lambda cache, key, victim: os.mkfifo(cache / f"{key}.part"),
    "unfinished embeddings by a second name": lambda cache, key, victim: os.link(victim, cache / f"{key}.part"),
    "a link at the new file": lambda cache, key, victim: (cache / f".{key}.new").symlink_to(victim),
    "a link at the new journal": lambda cache, key, victim: (cache / f".{key}.part.new").symlink_to(victim),
    "a lock that nobody holds": lambda cache, key, victim: (cache / f".{key}.lock").touch(),
    "a stream that is a link": lambda cache, key, victim: (cache / ".stream-x.h5.part").symlink_to(victim),
}
"""What is planted where there is no cache yet: the embeddings are made all the same."""

IN_THE_WAY = {
    "a lock that is a link": lambda cache, key, victim: (cache / f".{key}.lock").symlink_to(victim),
    "a lock that is a folder": lambda cache, key, victim: (cache / f".{key}.lock").mkdir(),
    "a folder as new journal": lambda cache, key, victim: (cache / f".{key}.part.new").mkdir(),
    **{f"a {kind} as cache": lambda cache, key, victim, make=make: make(cache / key) for kind, make in SPECIAL.items()},
    "noise as cache": lambda cache, key, victim: (cache / key).write_bytes(os.urandom(5000)),
    "nothing as cache": lambda cache, key, victim: (cache / key).touch(),
    "a link to a file of somebody else as cache": lambda cache, key, victim: (cache / key).symlink_to(victim),
}
"""What is planted in the place of a cache, or of its lock: one sentence names it."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder, random = tmp_path_factory.mktemp("home"), np.random.default_rng(0)
    (folder / "set").mkdir()
    for number in range(4):
        Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(folder / "set" / f"{number}.png")
    load_all()
    code, text = guarded(EXTRACT, folder, folder.with_name("told"), seconds=60)
    assert code == 0, text
    return folder


@pytest.fixture
def planted(home, tmp_path):
    """A copy of the folder without its cache, the name of that cache, and a file that must stay as it is."""
    place = shutil.copytree(home, tmp_path / "place")
    (cache,) = (place / "cache").iterdir()
    cache.unlink()
    (tmp_path / "victim").write_bytes(KEPT)
    return place, cache.name, tmp_path / "victim"


def assert_same(made, whole):
    with fe.EmbeddingCache(made) as one, fe.EmbeddingCache(whole) as other:
        np.testing.assert_array_equal(one[:], other[:])
        assert one.ids == other.ids and one.damage() is None


@pytest.mark.one_of_each
@pytest.mark.parametrize("words", [EXTRACT, f"{EXTRACT} --out o.h5"], ids=["in the folder", "with a name"])
@pytest.mark.parametrize("what", EMPTY)
def test_what_is_planted_beside_a_cache_changes_no_embedding(home, planted, tmp_path, what, words):
    place, key, victim = planted
    EMPTY[what](place / "cache", key, victim)
    code, text = guarded(words, place, tmp_path / "told", seconds=60)
    assert code == 0, text
    (whole,) = (home / "cache").iterdir()
    made = place / "o.h5" if "--out" in words else place / "cache" / key
    assert_same(made, whole)
    assert victim.read_bytes() == KEPT


@pytest.mark.one_of_each
@pytest.mark.parametrize("what", IN_THE_WAY)
def test_what_is_planted_in_the_place_of_a_cache_is_named_or_passed_over(home, planted, tmp_path, what):
    place, key, victim = planted
    IN_THE_WAY[what](place / "cache", key, victim)
    code, text = guarded(EXTRACT, place, tmp_path / "told", seconds=60)
    assert code == 3 and is_sentence(text) and key in text, f"{code}: {text}"
    code, text = guarded(f"{EXTRACT} --out o.h5", place, tmp_path / "told", seconds=60)
    assert code == 0, text
    (whole,) = (home / "cache").iterdir()
    assert_same(place / "o.h5", whole)
    assert victim.read_bytes() == KEPT


def test_a_damaged_cache_is_not_copied_and_other_names_are_shown_as_escapes(home, planted, tmp_path):
    place, key, _ = planted
    (whole,) = (home / "cache").iterdir()
    data = bytearray(whole.read_bytes())
    data[len(data) // 2] ^= 1
    (place / "cache" / key).write_bytes(data)
    (place / "cache" / "\x1b[2J.h5").write_bytes(b"x")
    code, text = guarded(f"{EXTRACT} --out o.h5", place, tmp_path / "told", seconds=60)
    assert code == 0 or (is_sentence(text) and "damaged" in text), text
    if code == 0:
        assert_same(place / "o.h5", whole)
    code, text = guarded("extract cache ls", place, tmp_path / "told", seconds=60)
    assert code == 0 and "\x1b" not in text and re.search(r"\\u001b", text), text
