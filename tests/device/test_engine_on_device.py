"""The comparison on a simulated device: the results of the CPU, and nothing that crosses unasked."""

import pickle

import numpy as np
import pytest
import torch
from _bounds import SMALL_BATCH, check_steady, measured, mixture
from _simulated import on_device, simulated

import finc_eval as fe
from finc_eval.embeddings.opening import open_pair
from finc_eval.embeddings.search import distance_blocks
from finc_eval.feature_maps.base import CosineFeatures

GEN, REF, THIRD = mixture(1, 6), mixture(2, 4), mixture(3, 5, 120)
SMALL = {"features": 20, "modes": 2}
SETTINGS = {
    "float64": {"precision": "float64"},
    "eigenvectors": {"method": fe.Finc(rotation=None)},
    "cosine": {"kernel": "cosine", "features": "auto"},
}


def check_same(found, expected):
    assert [(kind.id, kind.shares) for kind in found.kinds] == [(kind.id, kind.shares) for kind in expected.kinds]
    assert [mode.id for mode in found.directions] == [mode.id for mode in expected.directions]
    for mode, other in zip(found.directions, expected.directions, strict=True):
        assert mode.role == other.role and mode.share_gen == other.share_gen and mode.share_ref == other.share_ref
        assert mode.p_value == pytest.approx(other.p_value, abs=1e-3)
        assert abs(float(np.dot(mode.direction, other.direction))) > 0.999


def test_a_comparison_waits_a_bounded_number_of_times():
    found = check_steady(lambda run: fe.compare(GEN, REF, run=run, **SMALL), waits=200)
    check_same(found, fe.compare(GEN, REF, run=fe.Run(device="cpu"), **SMALL))


@pytest.mark.long  # the default settings: the test above
@pytest.mark.parametrize("name", SETTINGS)
def test_a_comparison_of_other_settings_waits_as_often(name):
    options = SMALL | SETTINGS[name]
    found, device = measured(lambda run: fe.compare(GEN, REF, run=run, **options), SMALL_BATCH)
    assert device.waits <= 200, device.by_place()
    check_same(found, fe.compare(GEN, REF, run=fe.Run(device="cpu"), **options))


@pytest.mark.long
def test_embeddings_that_lie_on_the_device_stay_there():
    def compared(run):
        return fe.compare(on_device(GEN), on_device(REF), run=run, **SMALL)

    found = check_steady(compared, waits=220, copies=7)  # of orders and folds, and not of rows
    assert found.signature == fe.compare(GEN, REF, run=fe.Run(device="cpu"), **SMALL).signature


@pytest.mark.long  # the same bound at another size
def test_the_number_of_frequencies_and_of_samples_change_no_bound():
    gen, ref = (np.concatenate([rows, rows + 0.01]) for rows in (GEN, REF))
    _, device = measured(lambda run: fe.compare(gen, ref, features=120, modes=2, run=run))
    assert device.waits <= 200, device.by_place()


@pytest.mark.long  # a sweep over rho: test_judgments_on_device.py
def test_a_sweep_waits_a_bounded_number_of_times_per_value():
    found = check_steady(lambda run: fe.sweep(GEN, REF, "sigma", [3.0], run=run, **SMALL), waits=200)
    assert len(found.points) == 1


@pytest.mark.one_of_each
@pytest.mark.parametrize("method", ["ken", "rarity", "clusters"])
def test_baselines_mix_nothing(method):
    gen, ref = GEN[:60], REF[:60]
    found, device = measured(lambda run: fe.compare(gen, ref, method=method, run=run, **SMALL), SMALL_BATCH)
    expected = fe.compare(gen, ref, method=method, run=fe.Run(device="cpu"), **SMALL)
    assert [mode.id for mode in found.directions] == [mode.id for mode in expected.directions]
    assert device.waits <= 400, device.by_place()


def test_a_sketch_of_the_host_is_compared_on_the_device(tmp_path):
    """A sketch that a file gave lies on the CPU, the reference's on the default device."""
    host = fe.Run(device="cpu")
    ref = fe.Sketch.reference(REF, features=40, run=host)
    gen = fe.Sketch.of(GEN, ref, run=host)

    def compared(run):
        return fe.compare(gen, ref.to(run.torch_device), modes=2, run=run)

    found, _ = measured(compared)
    check_same(found, fe.compare(gen, ref, modes=2, run=host))
    assert gen.feature_map.device == torch.device("cpu") and gen.to("cpu") is gen


def test_the_exact_kernel_takes_rows_of_the_host():
    rows = torch.from_numpy(GEN[:5])
    for phi in (fe.Sketch.reference(REF, features=4).feature_map, CosineFeatures(GEN.shape[1])):
        there, _ = measured(lambda run, phi=phi: phi.to(run.torch_device).exact(rows, rows).cpu())
        torch.testing.assert_close(there, phi.to("cpu").exact(rows, rows))


@pytest.mark.long  # like a sketch of the host, which goes there first
def test_a_sketch_on_the_device_is_compared():
    def compared(run):
        ref = fe.Sketch.reference(REF, features=40, run=run)
        return fe.compare(fe.Sketch.of(GEN, ref, run=run), ref, modes=2, run=run)

    found = check_steady(compared, waits=200, copies=12)  # weights of the hashes of a batch go with it
    assert found.directions and torch.is_tensor(found.feature_map.center)


def test_exact_distances_take_few_steps_and_a_pair_has_the_same_bits_in_any_company(monkeypatch):
    entries, fillings = 8 * GEN.shape[1], set()
    monkeypatch.setattr(distance_blocks, "GPU_PAIR_ENTRIES", entries)
    pad = torch.nn.functional.pad
    monkeypatch.setattr(
        torch.nn.functional, "pad", lambda *given, **named: fillings.add(given[1]) or pad(*given, **named)
    )
    x, y = open_pair(GEN[:5], REF[:4])
    with simulated():
        (block,) = distance_blocks.blocks(x, y, "sim")
        i, j = (one.flatten() for one in torch.meshgrid(torch.arange(5), torch.arange(4), indexing="ij"))
        together = block.exact(on_device(i), on_device(j)).cpu()
        assert fillings == {(0, 0), (0, 4)}  # 20 pairs in eights
        alone = [block.exact(on_device(i[k : k + 1]), on_device(j[k : k + 1])).cpu() for k in range(20)]
    assert torch.equal(together, torch.cat(alone))
    expected = ((GEN[:5, None].astype(float) - REF[None, :4]) ** 2).sum(2).ravel()
    np.testing.assert_allclose(together.numpy(), expected, rtol=1e-12)


def test_states_of_a_device_move_and_add_to_states_of_a_cpu():
    here = fe.SketchSum(GEN[:100], features=4, run=fe.Run(device="cpu"))

    def summed(run):
        sums = fe.SketchSum(GEN[:100], features=4, run=run)
        return pickle.loads(pickle.dumps(sums.add(sums.zero(), GEN))), sums

    (state, sums), _ = measured(summed)
    assert state.folds is not None and state.folds[0].first.device.type == "cpu"
    assert pickle.loads(pickle.dumps(sums)).feature_map.digest == here.feature_map.digest
    found = here.finish(here.combine(state, here.add(here.zero(), REF)))
    expected = here.finish(here.add(here.zero(), np.concatenate([GEN, REF])))
    assert found.n == expected.n and (found.covariance - expected.covariance).abs().max() < 1e-10
