"""Metrics by name, and of sets that come batch by batch."""

import pickle
from functools import partial
from inspect import isfunction

import numpy as np
import pytest
import torch
import torch.distributed as ranks
import torch.multiprocessing as processes

import finc_eval as fe
from finc_eval.measures.registry import METRICS

RNG = np.random.default_rng(0)
GEN, REF = RNG.normal(0.3, 1, (400, 8)).astype(np.float32), RNG.normal(0, 1, (300, 8)).astype(np.float32)


def values(scores):
    return {one.key: (one.value, one.interval, one.floor) for one in scores}


def filled(judge, parts):
    running = fe.metrics.running(judge)
    for gen, ref in parts:
        for rows, real in ((gen, False), (ref, True)):
            if len(rows):
                running.update(rows, real)
    return running


def test_every_metric_is_a_function_by_its_name():
    assert isfunction(fe.metrics)
    assert set(METRICS) < set(dir(fe.metrics))
    run = fe.Run(device="cpu")  # a GPU does not sum twice in one order
    for name in ("fd", "kid", "prdc", "mmd", "vendi"):
        assert values(getattr(fe.metrics, name)(GEN, REF, run=run)) == values(fe.metrics(GEN, REF, name, run=run))
    assert fe.metrics.fd(GEN, REF).value == fe.metrics(GEN, REF, "fd")["fd"].value
    with pytest.raises(AttributeError, match="fidd"):
        fe.metrics.fidd  # noqa: B018
    with pytest.raises(fe.DataError, match="fid is defined on inception-fid"):
        fe.metrics.fid(GEN, REF)
    with pytest.raises(fe.UsageError, match="fld needs a third set"):
        fe.metrics.fld(GEN, REF)


@pytest.mark.parametrize(
    ("name", "parameter"), [("prdc", {"k": 2}), ("precision_recall", {"k": 9}), ("mmd", {"sigma": 0.5})]
)
def test_parameters_of_a_metric_change_its_value_and_its_signature(name, parameter):
    default, changed = getattr(fe.metrics, name)(GEN, REF), getattr(fe.metrics, name)(GEN, REF, **parameter)
    for before, after in zip(default, changed, strict=True):
        assert before.value != after.value and before.signature != after.signature


@pytest.mark.parametrize(("offset", "rows"), [(1e6, 1), (1e6, 7), (1e5, 1), (0, 1), (0, 2)])
def test_rows_of_float64_are_not_rounded_before_the_whole_set_is_judged(offset, rows):
    gen, ref = (one.astype(np.float64) * 0.1 + offset for one in (GEN[:60], REF[:60]))
    gen[1] = gen[0] * (1 + 1e-12)  # near-copies in one batch, which float32 does not tell apart
    running = filled(["fd"], [(gen[at : at + rows], ref[at : at + rows]) for at in range(0, 60, rows)])
    again = pickle.loads(pickle.dumps(running))
    for one in (running, again):
        if offset:
            with pytest.raises(fe.UsageError, match="which float32 loses"):
                one.compute()
        else:
            assert values(one.compute()) == values(fe.metrics(gen, ref, ["fd"]))


@pytest.mark.parametrize("judge", [["fd", "kid", "prdc", "vendi"], None], ids=["named", "default"])
def test_batches_give_what_whole_sets_give(judge):
    batches = [(GEN[:7], REF[:100]), (torch.from_numpy(GEN[7:250]), REF[100:100]), (GEN[250:], REF[100:])]
    running = filled(judge, batches)
    assert values(running.compute()) == values(fe.metrics(GEN, REF, judge))
    running.reset()
    with pytest.raises(fe.DataError, match=r"gen has no samples yet: call update"):
        running.compute()
    running.update(GEN[:50], real=False)
    running.update(REF[:50], real=True)
    assert values(running.compute()) == values(fe.metrics(GEN[:50], REF[:50], judge))


def test_ranks_merge_to_the_whole_also_after_pickling_and_finc_is_computed_too():
    judge = partial(fe.compare, features=20)
    ranks = [filled(judge, [(GEN[part], REF[part])]) for part in (slice(0, 90), slice(90, 200), slice(200, None))]
    first, *others = (pickle.loads(pickle.dumps(one)) for one in ranks)
    first.merge_state(others[0])
    first.merge_state(iter(others[1:]))
    merged, whole = first.compute(), fe.compare(GEN, REF, features=20)
    found = [[(kind.share_gen, kind.p_value) for kind in one.kinds] for one in (merged, whole)]
    assert found[0] == found[1] and merged.spectrum == whole.spectrum


def run_rank(rank, place):
    """Embed every second batch, as a rank of a training job does, and let rank 0 write the scores of all."""
    ranks.init_process_group("gloo", init_method=f"file://{place}/meeting", rank=rank, world_size=2)
    mine = filled(["fd", "prdc"], [(GEN[rank * 200 :][:200], REF[rank * 150 :][:150])])
    found = [None, None]
    ranks.all_gather_object(found, mine)
    ranks.destroy_process_group()
    if rank == 0:
        found[0].merge_state(found[1])
        (place / "scores").write_bytes(pickle.dumps(values(found[0].compute())))


@pytest.mark.skipif(torch.cuda.is_available(), reason="a forked process cannot use a GPU")
def test_two_processes_that_gather_their_objects_get_the_scores_of_whole_sets(tmp_path):
    processes.start_processes(run_rank, (tmp_path,), nprocs=2, start_method="fork")  # nothing is imported again
    assert pickle.loads((tmp_path / "scores").read_bytes()) == values(fe.metrics(GEN, REF, ["fd", "prdc"]))


def test_the_frechet_distance_needs_sums_alone_whose_size_does_not_grow():
    def sketch(rows):
        one = fe.Sketch(fe.RandomFourierFeatures(8, 4, sigma=1), sample=0)
        for start in range(0, len(rows), 100):
            one.update(rows[start : start + 100])
        return one

    whole = fe.metrics.fd(GEN, REF).value
    assert fe.metrics.fd(sketch(GEN[:200]) + sketch(GEN[200:]), sketch(REF)).value == pytest.approx(whole, rel=1e-5)
    many = np.tile(GEN, (10, 1))
    assert len(pickle.dumps(sketch(many))) <= len(pickle.dumps(sketch(GEN))) + 200


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.full((2, 8), np.nan), "the new rows of gen are not all finite"),
        (np.zeros((2, 5)), "gen has 8 entries per embedding, and the new rows 5"),
        (np.zeros(8), "gen"),
    ],
)
def test_rows_that_cannot_be_added_are_refused_and_change_nothing(rows, message):
    running = filled("fd", [(GEN[:20], REF[:20])])
    before = running.compute()["fd"].value
    with pytest.raises(fe.FincEvalError, match=message):
        running.update(rows, real=False)
    assert running.compute()["fd"].value == before
