"""CPU seconds of metrics by finc-eval, with interval and floor where it has them, beside other libraries, without.

All get the same float32 arrays in one process of one thread and take turns, so that other work on the machine slows all
of them. `ratio` is the median of ours over the median of theirs, `value alone` the same for our value without interval
and floor, where a public function computes it: KID has its interval from the same pass, and PRDC has none.
FD of the others includes the covariances by numpy.cov. PRDC of torch-fidelity is precision and recall alone. The Vendi
score of vendi-score is by the n × n kernel and by the dual form, d × d. Versions are in the record: the time of a
matrix root depends on the version of scipy. FD of 10 000 samples takes minutes: `--large` adds it.

    OMP_NUM_THREADS=1 python benchmarks/metrics_peers.py [--rounds N] [--large] [name …]       default: 3 rounds, all
"""

import argparse
import contextlib
import io
import time
from importlib.metadata import version
from statistics import median

import numpy as np
import torch
from _record import record

import finc_eval as fe
from finc_eval.measures.frechet import frechet_distance
from finc_eval.measures.vendi import vendi

N, DIM = 5000, 1024
LARGE = (10_000, 2048)
PEERS = ("pytorch-fid", "clean-fid", "torch-fidelity", "prdc", "vendi-score", "scipy", "numpy")


def moments(x, y):
    """Return both means and covariances, in the order in which the others take them."""
    return [part for rows in (x, y) for part in (rows.mean(0), np.cov(rows, rowvar=False))]


def pytorch_fid_fd(x, y):
    from pytorch_fid.fid_score import calculate_frechet_distance

    calculate_frechet_distance(*moments(x, y))


def clean_fid_fd(x, y):
    from cleanfid.fid import frechet_distance

    frechet_distance(*moments(x, y))


def torch_fidelity_fd(x, y):
    from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric

    fid_statistics_to_metric(*(fid_features_to_statistics(torch.from_numpy(rows)) for rows in (x, y)), False)


def clean_fid_kid(x, y):
    from cleanfid.fid import kernel_distance

    kernel_distance(x, y)


def torch_fidelity_kid(x, y):
    from torch_fidelity.metric_kid import kid_features_to_metric

    sets = map(torch.from_numpy, (x, y))
    kid_features_to_metric(*sets, kid_subsets=100, kid_subset_size=1000, rng_seed=2020, verbose=False)


def prdc_of_theirs(x, y):
    from prdc import compute_prdc

    compute_prdc(real_features=y, fake_features=x, nearest_k=5)


def torch_fidelity_prc(x, y):
    from torch_fidelity.metric_prc import prc_features_to_metric

    prc_features_to_metric(*map(torch.from_numpy, (x, y)), prc_neighborhood=3, verbose=False)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def vendi_of_kernel(x, y):
    from vendi_score.vendi import score_K

    score_K(unit(x) @ unit(x).T)


def vendi_dual(x, y):
    from vendi_score.vendi import score_dual

    score_dual(unit(x))


OTHERS = {
    "fd": {"pytorch-fid": pytorch_fid_fd, "clean-fid": clean_fid_fd, "torch-fidelity": torch_fidelity_fd},
    "kid": {"clean-fid": clean_fid_kid, "torch-fidelity": torch_fidelity_kid},
    "prdc": {"prdc": prdc_of_theirs, "torch-fidelity": torch_fidelity_prc},
    "vendi": {"vendi-score, kernel": vendi_of_kernel, "vendi-score, dual": vendi_dual},
}


ALONE = {"fd": frechet_distance, "vendi": lambda x, y: vendi(x)}
"""Ours without interval and floor."""


def sets(n, dim):
    """Draw two sets whose entries have variances 1/k."""
    rng, scales = np.random.default_rng(0), np.arange(1, dim + 1, dtype=np.float32) ** -0.5
    x, y = (rng.standard_normal((n, dim), np.float32) * scales for _ in range(2))
    return 1.1 * x + 0.1 * scales, y


def by_turns(metric, pair, others, rounds):
    """Return the CPU seconds of every turn of each library; the first call of each, on few samples, does not count."""
    calls = {"finc-eval": lambda x, y: fe.metrics(x, y, [metric]), **others}
    if metric in ALONE:
        calls["value alone"] = ALONE[metric]
    few = [one[:1000, :64] for one in pair]
    taken = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            with contextlib.redirect_stdout(io.StringIO()):
                began = time.process_time()
                call(*(few if turn == 0 else pair))
                if turn:
                    taken[name].append(time.process_time() - began)
    return taken


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(OTHERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    runs = [(name, (N, DIM), OTHERS[name]) for name in arguments.names]
    if arguments.large and "fd" in arguments.names:
        runs.insert(0, ("fd", LARGE, {"pytorch-fid": pytorch_fid_fd}))
    rows = []
    for metric, (n, dim), others in runs:
        taken = by_turns(metric, sets(n, dim), others, arguments.rounds)
        found = {name: median(seconds) for name, seconds in taken.items()}
        ours, alone = found.pop("finc-eval"), found.pop("value alone", None)
        for name, seconds in found.items():
            rows.append(
                {
                    "metric": metric,
                    "n × d": f"{n} × {dim}",
                    "ours, CPU s": round(ours, 2),
                    "library": name,
                    "theirs, CPU s": round(seconds, 2),
                    "ratio": round(ours / seconds, 2),
                    "value alone": "" if alone is None else round(alone / seconds, 2),
                }
            )
            print(rows[-1], flush=True)
    versions = ", ".join(f"{name} {version(name)}" for name in PEERS)
    record("metrics_peers", rows, f"medians of {arguments.rounds} turns; {versions}")


if __name__ == "__main__":
    main()
