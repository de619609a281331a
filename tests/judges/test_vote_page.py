"""The page to vote on: pairs of one prompt, sides at random, names that nobody reads, and the same bytes again."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from finc_eval.cli.app import app
from finc_eval.core.errors import DataError, UsageError
from finc_eval.judges.vote_page import draw_ballots, encode, vote_page


@pytest.fixture
def folders(tmp_path):
    """Two models with the same names of files, of which the second has one more."""
    rng = np.random.default_rng(0)
    for name, count in (("secret-alpha", 6), ("secret-beta", 7)):
        (tmp_path / name).mkdir()
        for number in range(count):
            image = Image.fromarray(rng.integers(0, 255, (40, 60, 3), np.uint8))
            image.save(tmp_path / name / f"a dog {number}.png", pnginfo=None)
    return {name: str(tmp_path / name) for name in ("secret-alpha", "secret-beta")}


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_has_each_common_name_once_and_no_names_of_models(folders):
    page = vote_page(folders)
    data = data_of(page)
    assert sorted(one[0] for one in data["trials"]) == [f"a dog {number}" for number in range(6)]
    assert len(data["pictures"]) == 12 and all(one.startswith("data:image/") for one in data["pictures"])
    assert "secret" not in page and "alpha" not in page and ".png" not in page
    assert "default-src 'none'; img-src data:" in page and "http://" not in page and "https://" not in page
    assert len({len(one[3]) for one in data["trials"]}) == 1


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_pairs(folders):
    assert vote_page(folders, seed=3) == vote_page(folders, seed=3)
    assert data_of(vote_page(folders, seed=3))["trials"] != data_of(vote_page(folders, seed=4))["trials"]


def test_sides_are_random_and_pairs_of_models_are_equally_many():
    samples = {name: {f"p{n}": [n] for n in range(200)} for name in ("a", "b", "c")}
    ballots = draw_ballots(samples, 300, 0)
    assert [*Counter(frozenset(one.names) for one in ballots).values()] == [100] * 3
    left = Counter(one.left[0] for one in ballots if set(one.names) == {"a", "b"})
    assert 30 < left["a"] < 70  # 1 in 25 000 by chance
    assert all(one.left[1] == one.right[1] == int(one.prompt[1:]) for one in ballots)


def test_encoded_names_have_one_width_and_depend_on_the_salt():
    texts = {encode(names, salt, 40) for names in (("a", "b"), ("b", "a"), ("long name", "b")) for salt in (1, 2)}
    assert len(texts) == 6 and len({len(one) for one in texts}) == 1


def test_models_without_common_names_are_refused(folders, tmp_path):
    (tmp_path / "other").mkdir()
    Image.new("RGB", (40, 40)).save(tmp_path / "other" / "cat.png")
    with pytest.raises(DataError, match="secret-alpha and other have no prompt and no name of a sample in common"):
        vote_page({"secret-alpha": folders["secret-alpha"], "other": str(tmp_path / "other")})
    with pytest.raises(UsageError, match="a vote needs two models, got 1 model"):
        vote_page({"one": folders["secret-alpha"]})


def test_the_command_writes_one_file_and_spares_files_of_others(folders, tmp_path):
    out = tmp_path / "vote.html"
    command = ["leaderboard", "vote", *folders.values(), "--out", str(out)]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert CliRunner().invoke(app, command).exit_code == 0  # its own page is written again
    assert out.read_text() == vote_page(folders)
    for other in (["--seed", "4"], ["--number", "1"], ["--edge", "20"]):  # another question
        assert "choose another --out, or pass --force" in CliRunner().invoke(app, [*command, *other]).stderr
    assert out.read_text() == vote_page(folders)
    out.write_text("my notes")
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code != 0 and out.read_text() == "my notes"


def test_a_page_does_not_show_names_by_their_length(tmp_path):
    sets = {}
    for name in ("a", "a model with a long name", "bc"):
        sets[name] = tmp_path / name.replace(" ", "_")
        sets[name].mkdir()
        for number in range(2):
            Image.fromarray(np.full((8, 8, 3), 40 * len(name) % 256, np.uint8)).save(sets[name] / f"{number}.png")
    page = vote_page(sets, number=6)
    hidden = [names for _, _, _, names, *_ in data_of(page)["trials"]]
    assert len(hidden) == 6 and len({len(one) for one in hidden}) == 1
