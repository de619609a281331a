"""Several models on a board are paired by prompt: what one lacks is named, and the mix of prompts is not its fault."""

import contextlib
import io

import numpy as np
import pytest

import finc_eval as fe
from finc_eval import report

PROMPTS = [f"a {color} thing {place}" for color in ("red", "blue", "green", "grey") for place in range(20)]


def drawn(seed, each=4, *, without=(), more=None, moved=None):
    """Images of prompts, far apart by color: none of some, four times as many of a color, or a color moved."""
    rng, rows, names = np.random.default_rng(seed), [], []
    for prompt in PROMPTS:
        color = prompt.split()[1]
        count = 0 if prompt in without else each * (4 if color == more else 1)
        middle = 6.0 * np.eye(8)[["red", "blue", "green", "grey"].index(color)]
        place = np.full((count, 8), middle) + rng.normal(size=(count, 8))
        if color == moved:
            place += 6 * np.eye(8)[5]
        rows.append(place)
        names += [prompt] * count
    return fe.EmbeddingSet(np.concatenate(rows).astype(np.float32), metadata={"prompt": names})


@pytest.fixture(scope="module")
def models():
    return {
        "moved": drawn(1, moved="red"),
        "sound": drawn(2),
        "mixed": drawn(3, more="red"),
        "lacking": drawn(4, without=PROMPTS[:5]),
    }


@pytest.fixture(scope="module")
def board(models):
    return fe.leaderboard(models, drawn(5), pairs="prompt", metrics=["fd"])


def test_the_model_that_differs_on_the_same_prompts_is_last_and_the_others_are_tied(board):
    ranking = board.criterion()
    assert ranking.names[-1] == "moved"
    assert all(ranking.better(one, "moved", 0.05) for one in ("sound", "mixed", "lacking"))
    assert not any(
        ranking.better(one, other, 0.05)
        for one in ("sound", "mixed", "lacking")
        for other in ("sound", "mixed", "lacking")
    )


def test_without_pairs_the_mix_of_prompts_counts_as_the_models_fault(models):
    found = fe.leaderboard({name: models[name] for name in ("sound", "mixed")}, drawn(5), metrics=["fd"])
    assert found.criterion().better("sound", "mixed", 0.05)


def test_prompts_that_a_model_lacks_are_named_on_board_and_page(board, tmp_path):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        report.show(board)
    page = board.to_html(tmp_path / "page.html").read_text()
    for told in (" ".join(text.getvalue().split()), page):
        assert "lacking lacks 5 of the 80 values of prompt that another set has" in told
        assert "a red thing 0" in told
    assert sum("lacks" in one for one in board.warnings) == 1
