"""The figure for papers shows the shares and intervals of the result, mode by mode."""

from dataclasses import replace

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.demo import example_sets
from finc_eval.report import outline


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


@pytest.fixture(scope="module")
def comparison():
    return fe.compare(*(rows[:, ::8] for rows in example_sets(300)), features=50, modes=4)


def test_two_sets(comparison, tmp_path):
    figure = comparison.figure()
    kinds = comparison.significant()
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [kind.title for kind in kinds]
    shares = drawn(figure)
    assert shares["generated set"] == [percents(kind.share_gen, kind.shares["gen"].interval) for kind in kinds]
    assert shares["reference set"] == [percents(kind.share_ref, kind.shares["ref"].interval) for kind in kinds]
    figure.savefig(tmp_path / "shares.pdf")
    assert (tmp_path / "shares.pdf").read_bytes().startswith(b"%PDF")


def test_without_kinds_the_directions_are_drawn(comparison):
    modes = [mode for mode in comparison.directions if mode.p_value <= 0.05]
    shares = drawn(replace(comparison, kinds=(), headings=()).figure())
    assert modes
    assert shares["generated set"] == [percents(mode.share_gen, mode.share_gen_interval) for mode in modes]


def test_several_models():
    rows = np.random.default_rng(0).normal(size=(3, 120, 4)).astype(np.float32)
    rows[0, :30] += 9
    models = fe.kinds(dict(zip("abc", rows, strict=True)))
    modes = models.significant(0.9)
    shares = drawn(models.figure(0.9))
    assert modes and set(shares) == set(models.sets)
    for label, points in shares.items():
        assert points == [percents(mode.shares[label].share, mode.shares[label].interval) for mode in modes]


def test_names_are_text_whatever_they_hold(comparison, tmp_path):
    kinds = tuple(replace(kind, name="$x^{ \\frac $\u202e") for kind in comparison.kinds)
    figure = replace(comparison, kinds=kinds).figure()
    figure.savefig(tmp_path / "shares.pdf")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == [f"$x^{{ \\frac $\\u202e, {kind.id}" for kind in comparison.significant()]


def test_a_clean_result_is_drawn_and_an_impossible_level_refused():
    gen = example_sets(200)[0][:, ::8]
    assert fe.compare(gen[:60], gen[100:160], features=20, modes=2).figure().axes
    with pytest.raises(fe.UsageError, match="alpha must lie between 0 and 1, got 5"):
        fe.metrics(gen[:100], gen[100:200], "vendi").figure(5)


def test_every_result_has_a_figure_and_latex(documents, tmp_path):
    """One test for all types: a new type of result comes with both."""
    for name, result in documents.items():
        if name == "sketch":
            continue
        figure = result.figure(1 - 1e-9)
        assert figure.axes and all(axes.get_yticklabels() for axes in figure.axes), name
        figure.draw_without_rendering()
        text = result.to_latex(tmp_path / f"{name}.tex")
        tables = [one for one in outline(result).tables if one.rows]
        assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == len(tables), name
        assert (tmp_path / f"{name}.tex").read_text(encoding="utf-8") == text


def test_values_have_a_panel_for_each_quantity_and_floors():
    scores = fe.metrics(*(rows[:, ::8] for rows in example_sets(300)), ["vendi", "rke"])
    figure = scores.figure()
    assert [axes.get_xlabel() for axes in figure.axes] == ["vendi", "rke"]
    for axes, score in zip(figure.axes, scores, strict=True):
        value, floor = axes.containers
        (ends,) = value[2][0].get_segments()
        assert [*ends[:, 0]] == pytest.approx(score.interval)
        assert (value[0].get_xdata()[0], floor[0].get_xdata()[0]) == pytest.approx((score.value, score.floor))


def test_latex_takes_no_name_for_a_command(comparison):
    kinds = tuple(replace(kind, name=r"\input{x} 5 % & $_ [a] −1") for kind in comparison.kinds)
    text = replace(comparison, kinds=kinds, headings=()).to_latex()
    assert r"\textbackslash{}input\{x\} 5 \% \& \$\_ {[}a] $-$1" in text
    assert r"\input" not in text and "−" not in text


def test_tables_of_all_results_name_the_same_things_alike(documents):
    """Of every type: names, both ends of intervals, and whether an adjusted p-value is significant."""
    for name, result in documents.items():
        if name == "sketch":
            continue
        frame = result.to_frame()
        for column in frame.columns:
            if column.endswith("interval.low"):
                assert f"{column.removesuffix('low')}high" in frame, (name, column)
            assert "share_gen" not in column and column not in ("adjusted", "share_difference"), (name, column)
        if "p_value" in frame:
            known = frame["p_value"].notna()
            assert (frame["significant"][known] == (frame["p_value"][known] <= 0.05)).all(), name
        assert {"name", "kind.name", "type"} & {*frame.columns}, name
