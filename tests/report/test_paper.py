"""The figure for papers shows the shares and intervals of the result, mode by mode."""

from dataclasses import replace

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.demo import example_sets


def drawn(figure):
    """Value, lower and upper end of each share in each set, in percent."""
    axes = figure.axes[0]
    return {
        bars.get_label(): [
            (float(x), *map(float, ends[:, 0]))
            for x, ends in zip(bars[0].get_xdata(), bars[2][0].get_segments(), strict=True)
        ]
        for bars in axes.containers
    }


def percents(share, interval):
    return pytest.approx((100 * share, 100 * interval[0], 100 * interval[1]), abs=1e-6)


def test_two_sets(tmp_path):
    comparison = fe.compare(*example_sets(1500), features=300)
    figure = fe.shares_figure(comparison)
    kinds = comparison.significant()
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [kind.title for kind in kinds]
    shares = drawn(figure)
    assert shares["generated set"] == [percents(kind.share_gen, kind.shares["gen"].interval) for kind in kinds]
    assert shares["reference set"] == [percents(kind.share_ref, kind.shares["ref"].interval) for kind in kinds]
    figure.savefig(tmp_path / "shares.pdf")
    assert (tmp_path / "shares.pdf").read_bytes().startswith(b"%PDF")


def test_without_kinds_the_directions_are_drawn():
    comparison = fe.compare(*example_sets(1500), features=300, method=fe.Finc(clusters=False))
    modes = [mode for mode in comparison.directions if mode.p_value <= 0.05]
    shares = drawn(fe.shares_figure(comparison))
    assert modes
    assert shares["generated set"] == [percents(mode.share_gen, mode.share_gen_interval) for mode in modes]


def test_several_models(documents):
    rows = np.random.default_rng(0).normal(size=(3, 300, 4)).astype(np.float32)
    rows[0, :60] += 9
    models = fe.kinds(dict(zip("abc", rows, strict=True)))
    modes = models.significant(0.9)
    shares = drawn(fe.shares_figure(models, 0.9))
    assert modes and set(shares) == set(models.sets)
    for label, points in shares.items():
        assert points == [percents(mode.shares[label].share, mode.shares[label].interval) for mode in modes]


def test_names_are_text_whatever_they_hold(tmp_path):
    comparison = fe.compare(*example_sets(1500), features=300)
    kinds = tuple(replace(kind, name="$x^{ \\frac $\u202e") for kind in comparison.kinds)
    figure = fe.shares_figure(replace(comparison, kinds=kinds))
    figure.savefig(tmp_path / "shares.pdf")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == [f"$x^{{ \\frac $\\u202e, {kind.id}" for kind in comparison.significant()]


def test_nothing_to_draw_is_said():
    gen, _ = example_sets(200)
    with pytest.raises(fe.DataError, match=r"nothing is significant at 0\.05"):
        fe.shares_figure(fe.compare(gen[:100], gen[100:200], features=50))
    with pytest.raises(fe.UsageError, match="got dict"):
        fe.shares_figure({})
