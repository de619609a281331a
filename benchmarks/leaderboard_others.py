"""A board and a script: seven real generators of digits, ranked by finc-eval and by a spreadsheet over clean-fid.

Both get the same pixels of 3 000 digits a set. The script computes clean-fid's Fréchet distance (and its KID) for every
model and sorts, as people do. Which of its statements hold is asked of other samples: all of it is done again on 3 000
other digits of every model and of the reference. An order of two models that comes out the other way round there was
noise.

    python benchmarks/leaderboard_others.py
"""

import inspect
import tempfile
import time
from itertools import combinations

import numpy as np
import torch
from _real import asset
from _record import record
from cleanfid.fid import frechet_distance, kernel_distance
from generators import MODELS, mnist_test

import finc_eval as fe

N = 3000


def with_clean_fid(models, ref):
    rows = []
    mean, covariance = ref.mean(0), np.cov(ref, rowvar=False)
    for name, one in models.items():
        fd = frechet_distance(one.mean(0), np.cov(one, rowvar=False), mean, covariance)
        rows.append({"name": name, "fd": fd, "kid": kernel_distance(one, ref)})
    rows.sort(key=lambda row: row["kid"])
    print("\n".join(f"{row['name']},{row['fd']:.4g},{row['kid']:.4g}" for row in rows))
    return [row["name"] for row in rows]


def with_finc_eval(models, ref):
    board = fe.leaderboard(models, ref, metrics=("fd", "kid"), rank_by="kid")
    board.to_html(tempfile.mkdtemp() + "/board.html")
    return board


def halves():
    """Return twice the pixels of other digits of every model, and of the reference."""
    found, ref = [], mnist_test().reshape(-1, 784)
    sets = {name: np.load(asset("mnist_generated", f"{name}.npz"))["images"].reshape(-1, 784) for name in MODELS}
    order = np.random.default_rng(0).permutation(10_000)
    for rows in (order[:N], order[N : 2 * N]):
        pixels = {name: one[rows] / np.float32(255) for name, one in {**sets, "ref": ref}.items()}
        found.append((pixels, pixels.pop("ref")))
    return found


def lines(function):
    return len(inspect.getsource(function).splitlines()) - 1


def main():
    if asset("mnist_generated") is None:
        return
    torch.set_num_threads(1)
    rows = []
    for title, rank in (("script over clean-fid", with_clean_fid), ("fe.leaderboard", with_finc_eval)):
        results, start = [], time.perf_counter()
        for models, ref in halves():
            results.append(rank(models, ref))
        seconds = (time.perf_counter() - start) / 2
        claims = [claims_of(one) for one in results]
        rows.append(
            {
                "by": title,
                "lines": lines(rank),
                "s": f"{seconds:.0f}",
                "numbers": 2 if rank is with_clean_fid else len(results[0].criteria),
                "intervals, ties, kinds, page": "no" if rank is with_clean_fid else "yes",
                "pairs put in order, of 21": " and ".join(str(len(one)) for one in claims),
                "of these reversed by the other digits": sum((b, a) in claims[1] for a, b in claims[0]),
            }
        )
        print(rows[-1], flush=True)
    record("leaderboard_others", rows, f"{N:,} digits a set, 784 pixels, ordered by KID; one thread")


def claims_of(found):
    """Return the pairs of which the first is said to be better."""
    if isinstance(found, list):
        return set(combinations(found, 2))
    main = found.criterion()
    return {(a, b) for a in main.names for b in main.names if main.better(a, b, found.alpha)}


if __name__ == "__main__":
    main()
