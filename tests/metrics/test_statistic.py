"""Metrics of which the error follows from their function are ranked, gated and paired; others say why they are not."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.measures.registry import METRICS
from finc_eval.measures.vendi import truncated_vendi

RNG = np.random.default_rng(0)
REF, OLD, SAME = (RNG.normal(size=(300, 4)).astype("f4") for _ in range(3))
FAR = (OLD + 1).astype("f4")
GENERAL = [one.name for one in METRICS.values() if one.extractor is None and one.sets == ("gen", "ref")]


@pytest.mark.parametrize("name", GENERAL)
def test_a_metric_with_a_direction_has_an_interval_or_says_why_not(name):
    try:
        scores = fe.metrics(FAR, REF, name)
    except fe.DataError:
        pytest.skip("needs prompts")
    for score in scores:
        said = any(note.startswith("no interval") for note in score.notes)
        assert score.higher_is_better is None or said != (score.interval is not None), score


OF_OTHER_SETS = {"vendi_truncated", "fwd"}  # metrics that refuse these small sets, or have no error on them
ESTIMATED = [name for name in GENERAL if METRICS[name].estimator and name not in OF_OTHER_SETS]


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", sorted(ESTIMATED, key="kid".__ne__))
def test_a_metric_with_an_estimator_is_ranked_gated_and_paired(name):
    board = fe.leaderboard({"far": FAR, "same": SAME}, REF, metrics=[name])
    assert board.rows[0].name == "same"
    for row in board.rows:
        assert row.scores[name].rank_set is not None and row.scores[name].interval is not None
    ids = [f"{number}.png" for number in range(300)]
    sets = [fe.EmbeddingSet(rows, ids=ids) for rows in (OLD, (OLD + 1e-4).astype("f4"))]
    policy = {"metrics": {name: {"difference": 0.5}}}
    paired_policy = policy | {"pairs": "id"}
    limits = [fe.gate(sets[1], sets[0], REF, one).limits[0] for one in (paired_policy, policy)]
    paired, apart = (limit.interval[1] - limit.interval[0] for limit in limits)
    assert paired < 0.5 * apart


def test_the_truncated_score_is_that_of_all_eigenvalues_which_share_what_is_left():
    rows = RNG.normal(size=(150, 3)).astype("f4")
    kernel = np.exp(-((rows[:, None].astype(float) - rows) ** 2).sum(2) / 2) / 150
    largest = np.linalg.eigvalsh(kernel)[-12:]
    shares = largest + (1 - largest.sum()) / 12
    assert truncated_vendi(rows, 1.0, kept=12) == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-9)
    with pytest.raises(fe.UsageError, match="kept"):
        truncated_vendi(rows, 1.0, kept=0)
