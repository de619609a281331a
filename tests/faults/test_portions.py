"""Neither portions, device, cache nor sketches change what a comparison finds; a set is read a few times."""

import numpy as np
import pytest
import torch
from _portions import portions_of
from faults._planted import GEN, REF, check_planted, check_same_modes, compared, draw

import finc_eval as fe
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.recipe import Identity, recipe_of
from finc_eval.embeddings.writer import CacheWriter, only_writer
from finc_eval.samples.encoding import Encoding
from finc_eval.samples.source import Manifest

PNG = Encoding("PNG", "RGB", 28, 28, False)


@pytest.mark.long  # as of sketches and of kinds: test_sketch.py, test_kinds_of_comparison.py
@pytest.mark.parametrize("kernel", ["gaussian", pytest.param("cosine", marks=pytest.mark.long)])
def test_portions_change_nothing(thinned, kernel):
    large = compared(*thinned, kernel=kernel, modes=5)
    with portions_of(64):
        small = compared(*thinned, kernel=kernel, modes=5)
    assert small.significant()
    check_same_modes(small, large)
    assert [mode.id for mode in small.directions] == [mode.id for mode in large.directions]
    assert [kind.shares for kind in small.kinds] == [kind.shares for kind in large.kinds]
    assert small.signature == large.signature


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kernel", ["gaussian", "cosine"])
def test_neither_portions_nor_device_change_anything(thinned, kernel):
    on_cpu = compared(*thinned, kernel=kernel, modes=5, run=fe.Run(device="cpu"))
    for size in (64, 8192):
        with portions_of(size):
            check_same_modes(on_cpu, compared(*thinned, kernel=kernel, modes=5, run=fe.Run(device="cuda")))


class Counted(ArrayEmbeddings):
    """Embeddings that count how often they are read in full, and how large their batches are."""

    def __init__(self, rows):
        super().__init__(rows)
        self.passes, self.sizes = 0, set()

    def _rows_in_order(self, size):
        self.passes += 1
        for rows in super()._rows_in_order(size):
            self.sizes.add(len(rows))
            yield rows


def test_a_set_is_read_to_find_repeats_to_sketch_to_count_kinds_and_to_score(planted):
    gen, ref = map(Counted, planted)
    with portions_of(100):
        compared(gen, ref)
    for one in (gen, ref):
        assert one.passes <= 5  # near-repeats, too
        assert one.sizes == {100}


@pytest.mark.long
def test_of_a_cache_nothing_of_the_size_of_the_set_is_held(tmp_path, monkeypatch):
    sizes, between = [], EmbeddingCache.ids_between

    def recorded(self, start, stop):
        sizes.append(stop - start)
        return between(self, start, stop)

    for name, shares in (("gen", GEN), ("ref", REF)):
        rows = draw(shares, 2000, len(name) + ord(name[0]))
        ids = [f"{'a/long/folder' * 20}/{number}.png" for number in range(2000)]
        manifest = Manifest("folder", 2000, name * 20, {})
        identity = Identity(f"/data/{name}", manifest, "pixels", recipe_of(fe.load_card("pixels"), "float32"))
        path = tmp_path / f"{name}.h5"
        with only_writer(path), CacheWriter(path, identity.key, ids, {"embeddings": 6}, 1000) as writer:
            for start in range(0, 2000, 1000):
                part = slice(start, start + 1000)
                writer.write(rows[part], np.arange(start, start + 1000, dtype=np.uint64), [None] * 1000, [PNG] * 1000)
            writer.finish(identity)
    monkeypatch.setattr(EmbeddingCache, "ids", property(lambda self: pytest.fail("all ids were read at once")))
    monkeypatch.setattr(EmbeddingCache, "__array__", lambda *_: pytest.fail("all rows were read at once"))
    monkeypatch.setattr(EmbeddingCache, "ids_between", recorded)
    monkeypatch.setattr("finc_eval.embeddings.cache.ID_BLOCK", 100)
    monkeypatch.setattr("finc_eval.embeddings.pictures.ID_BLOCK", 100)
    monkeypatch.setattr("finc_eval.embeddings.base.PORTION", 250)
    with portions_of(200):
        found = compared(tmp_path / "gen.h5", tmp_path / "ref.h5")
    check_planted(found)
    assert max(sizes) <= 250
    assert found.over[0].tails[0].gen_ids[0].endswith(f"/{found.over[0].top_gen[0]}.png")


@pytest.mark.one_of_each
@pytest.mark.parametrize("settings", [{"rho": 2.0}, {"kernel": "cosine"}, {"kernel": "cosine", "rho": 2.0}])
def test_sketches_alone_find_the_same_and_are_less_sure(thinned, settings):
    gen, ref = thinned
    directions = {"method": fe.Finc(clusters=False), "modes": 5}
    sharp = compared(gen, ref, **directions, **settings)
    phi, rho = sharp.feature_map, settings.get("rho", 1.0)
    from_sketches = compared(fe.Sketch.of(gen, phi), fe.Sketch.of(ref, phi), **directions, rho=rho)
    found = {mode.id: mode for mode in from_sketches.directions}
    assert found.keys() == {mode.id for mode in sharp.directions}
    for exact in sharp.directions:
        mine = found[exact.id]
        assert abs(float(mine.direction @ exact.direction)) > 0.99
        assert mine.excess == pytest.approx(exact.excess, abs=1e-5)
        assert mine.interval[0] <= exact.interval[0] <= exact.interval[1] <= mine.interval[1]
        assert mine.p_value >= exact.p_value - 1e-9 or mine.excess < 0
