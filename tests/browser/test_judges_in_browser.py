"""The page of a board with votes and scores as a browser shows it."""

import numpy as np
import pytest

import finc_eval as fe

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Two models. A judge scores one lower on prompts of signs, and the name of this word would be markup."""
    rng, count = np.random.default_rng(0), 80
    prompts = [f"a {'<b>sign</b>' if n % 4 == 0 else 'dog'} of some length, number {n}" for n in range(count)]
    sets = {
        name: fe.EmbeddingSet(rng.normal(size=(count, 8)).astype(np.float32), metadata={"prompt": prompts})
        for name in ("one", "two", "ref")
    }
    scores = {
        name: {"prompt": prompts, "clip": rng.normal(size=count) - 3 * (name == "two") * (np.arange(count) % 4 == 0)}
        for name in ("one", "two")
    }
    votes = [
        {"prompt": prompts[n], "left": "one", "right": "two", "winner": ("two", "one", "two", "tie")[n % 4], "voter": n}
        for n in range(count)
    ]
    board = fe.leaderboard(
        {name: sets[name] for name in ("one", "two")}, sets["ref"], scores=scores, votes=votes, plan=True
    )
    return board.to_html(tmp_path_factory.mktemp("judged") / "board.html")


def test_the_page_of_votes_and_scores_is_quiet_fits_and_is_legible(visit, check_page, judged):
    page, events = visit(judged)
    check_page(page, events, judged)
    section = page.locator("section:has(#judges)").inner_text()
    assert "By clip, one is" in section and "What decides the margins" in section
    assert "two" in page.locator("section:has(#judges) table").first.inner_text()
