"""With unlike mixes of prompts, a difference is the sum of the model's part and the prompts' part."""

import numpy as np
import pytest
from scipy import stats

import finc_eval as fe
from finc_eval import report
from finc_eval.partitions.tests import Mixes

EVERY = np.arange(40)
CENTERS = np.random.default_rng(0).normal(size=(40, 8)) * 6
LAWS = np.random.default_rng(0).dirichlet(np.full(4, 0.5), (2, 12))


def drawn(prompts, seed, wrong=()):
    """Three images near the center of each prompt; half of those of wrong prompts are of prompt 3."""
    rng = np.random.default_rng(seed)
    of = np.repeat(prompts, 3)
    shown = np.where(np.isin(of, wrong) & (rng.random(len(of)) < 0.5), 3, of)
    rows = CENTERS[shown] + rng.normal(size=(len(of), 8))
    return fe.EmbeddingSet(rows.astype(np.float32), metadata={"prompt": [f"prompt {one}" for one in of]})


def divided(sizes, each, weights, **options):
    """Mixes of counts of kinds in each set and value."""
    return Mixes.of(np.array(each, float), np.array([*sizes, weights], float), **options)


def test_the_parts_are_those_of_kitagawa():
    """Two values, one kind: set one has 30 and 10 samples of them, set two 10 and 30."""
    found = divided([[30, 10], [10, 30]], [[[15], [1]], [[6], [9]]], [0.5, 0.5])
    assert found.plain[0, 0] == pytest.approx(16 / 40 - 15 / 40)
    within = 0.5 * (15 / 30 - 6 / 10) + 0.5 * (1 / 10 - 9 / 30)
    assert found.value[0, 0] == pytest.approx(found.plain[0, 0] - within)
    assert found.value[1, 0] == pytest.approx(-found.value[0, 0])
    inside = [(0.25**2, 0.5, 30), (0.25**2, 0.1, 10), (0.25**2, 0.6, 10), (0.25**2, 0.3, 30)]
    variance = sum(weight * share * (1 - share) / (n - 1) for weight, share, n in inside)
    assert found.variance[0, 0] == pytest.approx(variance)


def test_equal_mixes_have_no_part():
    assert divided([[10, 20], [20, 40]], [[[5], [1]], [[6], [9]]], [1 / 3, 2 / 3]) is None


@pytest.mark.one_of_each("most", "is_whole")
@pytest.mark.parametrize("most", [1, 3, 30])
@pytest.mark.parametrize("is_whole", [False, True])
def test_intervals_hold_the_part_of_the_mixes(most, is_whole):
    """1 to 30 samples a value; the last three values are of one set only."""
    rng = np.random.default_rng(most)
    sizes = rng.integers(1, most + 1, (2, 12)).astype(float)
    sizes[1, 9:] = 0
    common = 1 / (1 / np.maximum(sizes, 1e-9)).sum(0)
    weights = common / common.sum()
    true = sum(
        sign * (n / n.sum() - weights) @ (law * (n > 0)[:, None])
        for sign, n, law in zip((1, -1), sizes, LAWS, strict=True)
    )
    missed = 0
    for _ in range(400):
        each = [
            [rng.multinomial(int(n), law) for n, law in zip(*side, strict=True)]
            for side in zip(sizes, LAWS, strict=True)
        ]
        found = divided(sizes, each, weights, is_whole=is_whole)
        low, high = found.intervals(0.95)
        missed += ((true < low[0]) | (true > high[0])).sum()
    assert missed <= stats.binom.ppf(0.999, 1600, 0.05)


@pytest.fixture(scope="module")
def unlike():
    """Equal models, of which one answers ten prompts four times as often and lacks six others."""
    often = np.concatenate([EVERY[:34], np.repeat(EVERY[:10], 3)])
    return {"gen": drawn(often, 1), "ref": drawn(EVERY, 2)}


def test_unlike_mixes_of_equal_models_are_the_prompts_part(unlike):
    found = fe.kinds(unlike, pairs="prompt")
    assert not found.significant()
    assert max(abs(kind.mix.plain) for kind in found.kinds) > 0.02
    for kind in found.kinds:
        low, high = kind.mix.interval
        assert kind.mix.plain == pytest.approx(kind.difference + kind.mix.value)
        assert low <= kind.mix.plain <= high, kind
    assert fe.kinds({"gen": drawn(EVERY, 1), "ref": drawn(EVERY, 2)}, pairs="prompt").kinds[0].mix is None


def test_the_model_s_part_stays_where_the_mixes_are_unlike(unlike):
    wrong = drawn(np.concatenate([EVERY[:34], np.repeat(EVERY[:10], 3)]), 1, wrong=EVERY[12:24])
    found = fe.kinds({"gen": wrong, "ref": unlike["ref"]}, pairs="prompt")
    clear = [kind for kind in found.significant() if kind.set_with_most == "gen"]
    assert clear
    for kind in clear:
        assert kind.interval[0] > 0
        assert kind.mix.plain == pytest.approx(kind.difference + kind.mix.value)


def test_page_terminal_and_json_have_both_parts(unlike, tmp_path, capsys):
    found = fe.compare(unlike["gen"], unlike["ref"], pairs="prompt", features=20, modes=1)
    page = found.to_html(tmp_path / "page.html").read_text()
    report.show(found)
    report.show(fe.kinds(unlike, pairs="prompt"))
    assert capsys.readouterr().out.count("The model's part and the prompts' part") == 2
    assert "The model&#39;s part and the prompts&#39; part" in page
    found.save(tmp_path / "c.h5")
    assert fe.load(tmp_path / "c.h5").kinds == found.kinds
    assert found.to_dict()["kinds"][0]["mix"]["plain"] == found.kinds[0].mix.plain
