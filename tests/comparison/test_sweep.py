import json

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.comparison import sweep as sweeps
from finc_eval.comparison.sweep import BANDWIDTH_FACTORS
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.numerics.inference import significant
from finc_eval.numerics.moments import Moments


class Counted(ArrayEmbeddings):
    """Embeddings that count how often they are read: in full, and by a list of rows."""

    def __init__(self, rows):
        super().__init__(rows)
        self.passes = self.lists = 0

    def _rows_in_order(self, size):
        self.passes += 1
        return super()._rows_in_order(size)

    def rows_at(self, indices):
        self.lists += 1
        return super().rows_at(indices)


@pytest.fixture(scope="module")
def thinned(digits):
    """Digits without most of the zeros, ones and twos against all of them."""
    x, labels = digits
    rng = np.random.default_rng(1)
    kept = (labels[:600] > 2) | (rng.random(600) < 0.05)
    return x[:600, ::4][kept], x[600:1200, ::4]


@pytest.fixture(scope="module")
def few(digits):
    """Some digits against some others, where it does not matter what is found."""
    x = digits[0]
    return x[:100, ::4], x[100:220, ::4]


@pytest.fixture(autouse=True)
def small_resamples(monkeypatch):
    """The papers' rule needs exact kernels, which take most of a sweep's time."""
    monkeypatch.setattr(sweeps, "RESAMPLE", 20)


@pytest.fixture(scope="module")
def sigmas(thinned):
    default = fe.Sketch.reference(thinned[1], features=2).feature_map.sigma
    return 0.1 * default, default, 20 * default


@pytest.fixture(scope="module")
def sweep(thinned, sigmas):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps, "RESAMPLE", 20)
        return fe.sweep(*thinned, "sigma", sigmas, features=80)


def test_a_sweep_of_the_bandwidth_sketches_each_set_in_one_pass_whatever_the_number_of_bandwidths(few, sigmas):
    gen, ref = map(Counted, few)
    fe.sweep(gen, ref, "sigma", sigmas, features=20, modes=2)
    assert (gen.passes, ref.passes) == (2, 2)  # one looks for repeats
    once = gen.lists, ref.lists
    fe.sweep(gen, ref, "sigma", sigmas[:1], features=20, modes=2)
    assert (gen.lists, ref.lists) == (2 * once[0], 2 * once[1])


def test_its_point_at_the_default_bandwidth_is_what_compare_says_of_the_sketches(sweep, thinned, sigmas):
    gen, ref = thinned
    phi = fe.Sketch.reference(ref, features=80, sigma=sigmas[1]).feature_map
    direct = fe.compare(gen=fe.Sketch.of(gen, phi), ref=fe.Sketch.of(ref, phi), method=fe.Finc(clusters=False))
    assert [point.value for point in sweep.points] == list(sigmas)
    point = sweep.points[1]
    assert sweep.parameter == "sigma"
    assert sweep.default == pytest.approx(sigmas[1])
    assert point.comparison.signature == direct.signature
    assert point.comparison.to_dict() == direct.to_dict()
    assert [m.role for m in significant(direct.directions, 0.05)][-1] == "under"


def test_either_end_carries_its_warning_and_the_middle_none(sweep):
    small, middle, large = (point.comparison.warnings for point in sweep.points)
    assert len(small) == len(large) == 1
    assert "is too small" in small[0]
    assert "is too large" in large[0]
    assert middle == ()


def test_left_to_itself_it_tries_multiples_of_the_median_distance(digits):
    x = digits[0][:, ::4]
    sweep = fe.sweep(x[:60], x[60:160], "sigma", features=10, modes=2)
    median = 2 * sweep.default
    assert [point.value for point in sweep.points] == pytest.approx([factor * median for factor in BANDWIDTH_FACTORS])
    assert sweep.default == fe.Sketch.reference(x[60:160], features=10).feature_map.sigma
    assert sweep.papers_rule is None or sweep.papers_rule in [point.value for point in sweep.points]


def test_the_papers_rule_is_that_of_the_exact_score(few, sigmas, monkeypatch):
    seen = []

    def score(positive):
        seen.append(positive)
        return 0.0

    monkeypatch.setattr(sweeps, "ken_score", score)
    assert fe.sweep(*few, "sigma", sigmas, features=5, modes=1).papers_rule == sigmas[0]
    assert len(seen) == 10 * len(sigmas)
    assert all((values > 0).all() for values in seen)
    draws = iter(range(1000))
    monkeypatch.setattr(sweeps, "ken_score", lambda positive: float(next(draws)))
    assert fe.sweep(*few, "sigma", sigmas, features=5, modes=1).papers_rule is None


def nested(shares, n, seed):
    """Four groups far apart, each of four tight kinds near each other; `shares` are those of the groups."""
    rng = np.random.default_rng(seed)
    groups, kinds = rng.choice(4, n, p=shares), rng.integers(0, 4, n)
    rows = np.concatenate([20 * np.eye(4)[groups], 2 * np.eye(4)[kinds]], 1)
    return (rows + 0.1 * rng.standard_normal((n, 8))).astype(np.float32)


def best_samples(rows, tail_ids):
    """Of a comparison of sketches the ids say which rows are meant; the indices are those in the sketch's sample."""
    return rows[[int(name) for name in tail_ids]]


def kinds_of(gen, mode):
    """How many kinds, of whatever group, the best samples of a mode are of."""
    return len(set(best_samples(gen, mode.tails[0].gen_ids)[:, 4:].argmax(1)))


def test_modes_spread_the_more_the_wider_the_bandwidth():
    gen, ref = nested([0.7, 0.1, 0.1, 0.1], 500, 0), nested([0.1, 0.1, 0.4, 0.4], 500, 1)
    sweep = fe.sweep(gen, ref, "sigma", [0.8, 8.0], features=100, modes=4)
    narrow, wide = sweep.points
    for point in sweep.points:
        assert len(point.spreadness) == len(point.comparison.directions)
    # A mode is one kind of a group at first, and then the whole group.
    assert kinds_of(gen, narrow.comparison.over[0]) == 1
    assert kinds_of(gen, wide.comparison.over[0]) > 2
    assert narrow.comparison.over[0].mass_gen == pytest.approx(0.7 / 4, abs=0.03)
    assert wide.comparison.over[0].mass_gen == pytest.approx(0.7, abs=0.07)
    assert 2 * max(narrow.spreadness) < wide.spreadness[0]
    assert np.mean(narrow.spreadness) < np.mean(wide.spreadness)


def test_spreadness_is_the_trace_of_the_covariance_of_the_best_samples_of_the_set_that_has_more(sweep, thinned):
    """Appendix B.5 of the paper. The sweep divides by the trace of a sample of the reference."""
    gen, ref = thinned
    point, traces = sweep.points[1], []
    for mode, spread in zip(point.comparison.directions, point.spreadness, strict=True):
        rows, ids = (gen, mode.tails[0].gen_ids) if mode.role == "over" else (ref, mode.tails[0].ref_ids)
        best = best_samples(rows, ids).astype(np.float64)
        assert 1 < len(best) <= 50
        traces.append(np.trace(np.cov(best.T)) / spread)
    assert traces == pytest.approx([traces[0]] * len(traces), rel=1e-4)
    assert traces[0] == pytest.approx(np.trace(np.cov(ref.T)), rel=0.03)


@pytest.mark.parametrize("label", ["gen", "ref"])
def test_a_sketch_has_one_bandwidth_and_is_refused(few, label, tmp_path):
    phi = fe.RandomFourierFeatures(196, 20, sigma=3.0)
    sets = dict(zip(("gen", "ref"), few, strict=True))
    sketch = fe.Sketch.of(sets[label], phi)
    sketch.save(tmp_path / "sketch.h5")
    for source in (sketch, tmp_path / "sketch.h5"):
        with pytest.raises(
            fe.FincEvalError, match=f"{label} is a sketch, which has one bandwidth: pass its embeddings"
        ):
            fe.sweep(**{**sets, label: source}, parameter="sigma")


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf")])
def test_a_bandwidth_out_of_range_is_refused(few, sigma):
    with pytest.raises(fe.FincEvalError, match=f"sigma must be a positive number, got {sigma}"):
        fe.sweep(*few, "sigma", [5.0, sigma], features=10)


@pytest.fixture
def products(monkeypatch):
    """How many rows went into moments of φ, and so into products, as it happens."""
    rows = []
    update = Moments.update

    def counted(self, given):
        if self.precision == "float32":  # moments of the embeddings themselves are of float64
            rows.append(len(given))
        update(self, given)

    monkeypatch.setattr(Moments, "update", counted)
    return rows


def test_a_sweep_of_rho_accumulates_each_set_once(few, products):
    gen, ref = map(Counted, few)
    sweep = fe.sweep(gen, ref, "rho", [5, 1, 2, 1], features=20, modes=2)
    assert sum(products) == gen.n + ref.n
    assert (gen.passes, ref.passes) == (2, 2)  # one looks for repeats
    assert [point.value for point in sweep.points] == [1, 2, 5]
    assert [point.comparison.settings.rho for point in sweep.points] == [1, 2, 5]
    assert sweep.papers_rule is None


def without_advice(sweep):
    """Return a sweep as a document, without what further samples would show: a sketch keeps no more of them."""
    found = sweep.to_dict()
    for point in found["points"]:
        del point["comparison"]["headline"], point["comparison"]["visible"]
    del found["checksum"]
    return found


def test_sketches_are_enough_for_a_sweep_of_rho(few, products):
    phi = fe.Sketch.reference(few[1], features=20).feature_map
    sketches = [fe.Sketch.of(rows, phi) for rows in few]
    products.clear()
    from_sketches = fe.sweep(*sketches, "rho", [1.0, 3.0], modes=2)
    assert products == []
    from_rows = fe.sweep(*few, "rho", [1.0, 3.0], features=20, modes=2)
    assert without_advice(from_sketches) == without_advice(from_rows)
    point = from_sketches.points[1]
    direct = fe.compare(*sketches, rho=point.value, modes=2, method=fe.Finc(clusters=False))
    assert point.comparison.to_dict() == direct.to_dict()


@pytest.mark.long  # a comparison at a high ρ: test_compare.py
def test_that_no_mode_passes_a_high_rho_is_an_answer(thinned):
    gen, ref = thinned
    sweep = fe.sweep(gen, ref, "rho", [1.0, 5.0], features=150)
    at_one, at_five = (point.comparison for point in sweep.points)
    assert significant(at_one.directions, 0.05)
    # Of the digits that gen has, none is five times as frequent as in ref.
    assert [mode for mode in significant(at_five.directions, 0.05) if mode.role == "over"] == []
    # And a twentieth of three digits is less than a fifth, but they resemble other digits too much to pass.
    assert significant(at_five.directions, 0.05) == ()
    assert json.loads(sweep.to_json())["points"][1]["comparison"]["settings"]["rho"] == 5


def test_a_new_kind_passes_every_rho():
    gen, ref = nested([0.4, 0.2, 0.2, 0.2], 500, 2), nested([0.0, 0.4, 0.3, 0.3], 500, 3)
    for point in fe.sweep(gen, ref, "rho", [1, 10, 100], sigma=8.0, features=100, modes=3).points:
        first = significant(point.comparison.directions, 0.05)[0]
        assert first.role == "over"
        assert (best_samples(gen, first.tails[0].gen_ids).argmax(1) == 0).all()
        assert first.mass_gen == pytest.approx(0.4, abs=0.05)


def test_with_the_roles_reversed_the_results_are_mirrored(few):
    phi = fe.Sketch.reference(few[1], features=60).feature_map
    a, b = (fe.Sketch.of(rows, phi) for rows in few)
    for mine, other in zip(
        *(fe.sweep(*pair, "rho", [1.0, 2.0], modes=3).points for pair in ((a, b), (b, a))), strict=True
    ):
        assert mine.value == other.value
        mirror = other.comparison.spectrum
        assert mine.comparison.spectrum.over == pytest.approx(mirror.under, abs=1e-6)
        assert mine.comparison.spectrum.under == pytest.approx(mirror.over, abs=1e-6)
        for one, mirrored in zip(mine.comparison.over, other.comparison.under, strict=True):
            assert one.excess == pytest.approx(mirrored.excess, abs=1e-5)
            assert (one.mass_gen, one.mass_ref) == pytest.approx((mirrored.mass_ref, mirrored.mass_gen), abs=1e-5)
            assert one.tails[0].gen_ids[0] == mirrored.tails[0].ref_ids[0]
        over = len(mine.comparison.over)
        # Each is over the median distance of its own reference.
        ratios = np.array(mine.spreadness[:over]) / np.array(other.spreadness[len(other.spreadness) - over :])
        assert over == 0 or np.ptp(ratios) < 1e-6


def test_without_samples_a_spreadness_is_unknown(few):
    phi = fe.RandomFourierFeatures(196, 50, sigma=3.0)
    sketches = [fe.Sketch.of(rows, phi, sample=0) for rows in few]
    sweep = fe.sweep(*sketches, "rho", [1.0], method=fe.Finc(rotation=None), modes=3)
    assert set(sweep.points[0].spreadness) == {None}
    modes = sweep.points[0].comparison.directions
    assert modes and json.loads(sweep.to_json())["points"][0]["spreadness"] == [None] * len(modes)


def test_a_given_bandwidth_is_enough_for_a_reference_of_copies(digits):
    x = digits[0]
    sweep = fe.sweep(x[:100], np.repeat(x[100:101], 60, 0), "rho", [1.0], sigma=5.0, features=50)
    assert significant(sweep.points[0].comparison.directions, 0.05)
    assert set(sweep.points[0].spreadness) == {None}


def test_a_sweep_has_a_json_twin(sweep, tmp_path):
    text = sweep.to_json(tmp_path / "sweep.json")
    data = json.loads((tmp_path / "sweep.json").read_text())
    assert data == json.loads(text)
    assert (data["parameter"], data["default"], data["papers_rule"]) == ("sigma", sweep.default, sweep.papers_rule)
    assert [point["value"] for point in data["points"]] == [point.value for point in sweep.points]
    of_one = json.loads(sweep.points[1].comparison.to_json())
    assert of_one == of_one | data["points"][1]["comparison"]
    assert data["points"][1]["spreadness"] == list(sweep.points[1].spreadness)


def test_a_sweep_tests_directions_alone_and_carries_warnings_of_repeats(few):
    gen, ref = few
    repeated = np.repeat(gen[:40], 3, 0)
    for parameter, values in (("rho", [1.0]), ("sigma", [6.0])):
        found = fe.sweep(repeated, ref, parameter, values, features=20, modes=2)
        assert found.points[0].comparison.settings.method == fe.Finc(clusters=False)
        assert found.points[0].comparison.kinds == () and found.points[0].comparison.difference is None
        assert any("gen has only 40 distinct samples" in note for note in found.warnings)


def test_settings_out_of_range_are_refused(few):
    for parameter in ("rho", "sigma"):
        with pytest.raises(fe.FincEvalError, match="a sweep needs at least one value of its parameter, got none"):
            fe.sweep(*few, parameter, [], features=10)
    with pytest.raises(fe.FincEvalError, match="rho must be a positive number, got 0"):
        fe.sweep(*few, "rho", [1, 0], features=10)
    with pytest.raises(fe.FincEvalError, match="modes must be a whole number of at least 1, got -1"):
        fe.sweep(*few, "sigma", [5.0], features=10, modes=-1)


def test_a_bad_rho_is_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(ArrayEmbeddings, "_rows_in_order", lambda *_: pytest.fail("a set was read"))
    rows = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
    with pytest.raises(fe.FincEvalError, match="rho must be"):
        fe.sweep(rows, rows + 1, "sigma", rho=-1.0)
