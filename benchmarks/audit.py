"""The privacy audit: planted generators, its null, its power as printed and as measured, and its speed.

Planted generators stand for what a trained one may do. Each makes as many samples as the training set has: fresh real
samples; means of a fresh sample and the two nearest other ones, which are smoother than real samples and copies of
none; a mixture of 100 diagonal Gaussians fitted to the training set; training samples, drawn with replacement, with
noise of .3 and .1 deviations of an axis; and fresh samples with 25, 5 and 1 % exact copies among them. MNIST is its 10
000 test images on 20 principal components of deviation 1, from images used for nothing else. Digits are those of
scikit-learn, on 20 components as well. Photographs are Tiny-ImageNet's in EfficientNet-Lite0's features, on 64. "r"
marks the values of a former prototype in the setting of MNIST, with other random numbers.

    python benchmarks/audit.py [planted null sides power altered speed]        default: all but speed
"""

import resource
import sys
import time

import numpy as np
import torch
from _altered_copies import altered, idx_images
from _real import asset, tiny_imagenet
from _record import record
from sklearn.datasets import load_digits
from sklearn.mixture import GaussianMixture

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search.neighbors import nearest, radii
from finc_eval.memorization.audit import CALIBRATION_NEIGHBORS
from finc_eval.memorization.copying import Closeness
from finc_eval.memorization.holdout import find_sides
from finc_eval.memorization.nearness import Near, Nearness
from finc_eval.memorization.settings import AUDIT_ALPHA, MEASURES_PART, STRATA_PART, AuditSettings
from finc_eval.memorization.tails import COPY_NOISES, calibrated_distances, plant_copies, power_table, tail_p_value
from finc_eval.numerics.inference import wilson

PARTS = ("train", "holdout", "reference", "gen")
KINDS = ("fresh", "smooth", "GMM-100", "copies + .3", "copies + .1", "25 % copies", "5 % copies", "1 % copies")
# AuthPct, C_T, DCR, NNDR, and then AUC and TPR at 1 % of nearest, of DOMIAS, and of KAHM at scale .001.
REFERENCE = {
    "fresh": (53, -1.1, 51.7, 0.91, "0.514 / 1.6", "0.497 / 0.7", "0.510 / 1.5"),
    "GMM-100": (85, 9.3, 66.1, 0.95, "0.580 / 1.8", "0.591 / 2.1", "0.546 / 1.5"),
    "copies + .3": (16, -20.5, 97.6, 0.56, "0.800 / 16.7", "0.721 / 17.3", "0.679 / 2.6"),
    "copies + .1": (0.4, -31.0, 100, 0.21, "0.823 / 64.3", "0.768 / 28.1", "0.796 / 15.1"),
    "25 % copies": (40, -8.9, 64.0, 0.86, "0.636 / 26.1", "0.607 / 8.8", "0.633 / 26.2"),
    "5 % copies": (51, -2.7, 54.4, 0.91, "0.537 / 6.4", "0.515 / 2.1", ""),
}


def components(x, count, spare):
    """Project rows on the leading principal components of the last `spare`, which are used for nothing else."""
    public = x[-spare:].astype(np.float64)
    mean = public.mean(0)
    _, values, axes = np.linalg.svd(public - mean, full_matrices=False)
    encoded = (x[:-spare] - mean) @ axes[:count].T / (values[:count] / (spare - 1) ** 0.5)
    return encoded.astype(np.float32)


def mnist(seed=0):
    path = asset("mnist", "t10k-images-idx3-ubyte.gz")
    if path is None:
        return None
    images = idx_images(path).reshape(-1, 784).astype(np.float32) / 255
    return components(images[np.random.default_rng(seed).permutation(10_000)], 20, 2000)


def digits():
    images = load_digits().data / 16
    return components(images[np.random.default_rng(0).permutation(len(images))], 20, 397)


def photographs():
    found = tiny_imagenet()
    return None if found is None else components(found[0][np.random.default_rng(0).permutation(7200)], 64, 1200)


def parts(x, rng=None):
    """Return four disjoint parts of the rows, of one size."""
    order = np.arange(len(x)) if rng is None else rng.permutation(len(x))
    size = len(x) // 4
    return {name: x[order[place * size : (place + 1) * size]] for place, name in enumerate(PARTS)}


def generator(kind, sets, rng):
    train, fresh = sets["train"], sets["gen"]
    if kind == "fresh":
        return fresh
    if kind == "smooth":
        return smoothed(fresh)
    if kind == "GMM-100":
        mixture = GaussianMixture(min(100, len(train) // 10), covariance_type="diag", random_state=0, reg_covar=1e-4)
        return mixture.fit(train).sample(len(train))[0].astype(np.float32)
    if kind.startswith("copies"):
        drawn = train[rng.integers(len(train), size=len(train))]
        return (drawn + float(kind.split()[-1]) * rng.standard_normal(drawn.shape)).astype(np.float32)
    return with_copies(fresh, train, float(kind.split()[0]) / 100, rng)


def smoothed(fresh):
    """Return the mean of each sample and the two nearest other ones."""
    return fresh[nearest(as_embeddings(fresh), as_embeddings(fresh), 3).indices].mean(1)


def with_copies(fresh, train, share, rng):
    count = round(share * len(fresh))
    made = fresh.copy()
    made[:count] = train[rng.choice(len(train), count, replace=False)]
    return made


def planted():
    rows = []
    for name, make in (("MNIST", mnist), ("digits", digits), ("photographs", photographs)):
        x = make()
        if x is None:
            continue
        sets = parts(x)
        for kind in KINDS:
            made = generator(kind, sets, np.random.default_rng(1))
            found = fe.audit(made, sets["train"], sets["holdout"], sets["reference"])
            measures = {one.name: one for one in found.copying.measures}
            attacks = {one.name: one.statistics for one in found.attacks}
            controls = [one.control.auc for one in found.attacks]
            r = REFERENCE.get(kind, ("",) * 7) if name == "MNIST" else ("",) * 7
            row = {
                "data": name,
                "generator": kind,
                "calibrated, %": round(100 * measures["calibrated"].value, 1),
                "p": f"{measures['calibrated'].adjusted:.1g}",
                "AuthPct": beside(round(measures["authpct"].value, 1), r[0]),
                "C_T": beside(round(measures["c_t"].value, 1), r[1]),
                "DCR, %": beside(round(100 * measures["dcr"].value, 1), r[2]),
                "NNDR": beside(round(measures["nndr"].value, 2), r[3]),
                "MiFID": round(measures["mifid"].value, 2),
                "FLD gap": round(measures["fld_gap"].value, 1),
                "nearest: AUC / TPR at 1 %": beside(both(attacks["nearest"]), r[4]),
                "ball": both(attacks["ball"]),
                "DOMIAS": beside(both(attacks["domias"]), r[5]),
                "KAHM": beside(both(attacks["kahm"]), r[6]),
                "control AUCs": f"{min(controls):.3f} to {max(controls):.3f}",
                "found by": ", ".join(found.copying.found_by) or "none",
                "nearer to": {"training": "the training set", "real": "real samples"}.get(found.nearer_to, "–"),
            }
            print(row, flush=True)
            rows.append(row)
    record(
        "audit_planted",
        rows,
        notes="2 000 MNIST images, 350 digits, 1 500 photographs in each set; p is "
        "that of the calibrated distance, found by those with an adjusted p up to .05; r beside ours; controls of 350 "
        "digits have a standard deviation of .03",
    )


def beside(ours, r):
    return str(ours) if r == "" else f"{ours} (r {r})"


def both(statistics):
    return f"{statistics.auc:.3f} / {100 * statistics.at_1_percent.tpr:.1f}"


def null(repeats=60):
    """Record how often each p-value of fresh generators is up to .05, and the range of the controls."""
    x = mnist()
    if x is None:
        return
    rng, levels, controls, intervals = np.random.default_rng(2), {}, {}, {}
    anything = kinds = alarms = 0
    for _ in range(repeats):
        sets = parts(x, rng)
        found = fe.audit(sets["gen"], sets["train"], sets["holdout"], sets["reference"])
        for one in found.copying.measures:
            levels.setdefault(one.name, []).append(one.p_value <= 0.05)
        for attack in found.attacks:
            controls.setdefault(attack.name, []).append(attack.control.auc)
            low, high = attack.statistics.auc_interval
            intervals.setdefault(attack.name, []).append(low <= 0.5 <= high)
        anything += bool(found.copying.found_by)
        kinds += bool(found.copying.memorized_strata)
        succeeds = [attack for attack in found.attacks if attack.succeeds]
        alarms += bool(found.copying.found_by or found.copying.memorized_strata or succeeds)
    rows = [
        {"what": f"{name}: p ≤ .05, of {repeats}", "seen": sum(passed), "expected": f"{0.05 * repeats:g}"}
        for name, passed in levels.items()
    ]
    for what, seen, part in (("measure", anything, MEASURES_PART), ("kind", kinds, STRATA_PART), ("alarm", alarms, 1)):
        expected = f"≤ {part * AUDIT_ALPHA * repeats:g}"
        rows.append({"what": f"any {what}, adjusted, of {repeats}", "seen": seen, "expected": expected})
    rows += [
        {
            "what": f"{name}: control AUC, least and largest",
            "seen": f"{min(found):.3f}, {max(found):.3f}",
            "expected": ".45 to .55",
        }
        for name, found in controls.items()
    ]
    rows += [
        {"what": f"{name}: interval of the AUC holds ½, of {repeats}", "seen": sum(held), "expected": f"{repeats}"}
        for name, held in intervals.items()
    ]
    for row in rows:
        print(row, flush=True)
    record("audit_null", rows, notes="MNIST, random splits of 8 000 images in four; nothing is copied")


def sides(repeats=100):
    """Record how often samples that copy nothing are said to be nearer to the training set than to the holdout."""
    x = mnist()
    if x is None:
        return
    makers = {
        "fresh": lambda fresh, rng: fresh,
        "smooth": lambda fresh, rng: smoothed(fresh),
        "five near copies of each": lambda fresh, rng: jittered(fresh[np.repeat(np.arange(len(fresh) // 5), 5)], rng),
        "20 near copies of one": lambda fresh, rng: np.concatenate([jittered(fresh[[0] * 20], rng), fresh[20:]]),
    }
    rows = []
    for what, make in makers.items():
        for sizes in ((1000, 1000, 1000), (1000, 4000, 400), (1000, 400, 4000), (200, 2000, 2000)):
            told = sum(
                side_p_value(x, sizes, make, np.random.default_rng(seed)) <= AUDIT_ALPHA for seed in range(repeats)
            )
            low, high = wilson(told / repeats, repeats)
            rows.append(
                {
                    "generated samples": what,
                    "generated, training, holdout": "{:,}, {:,}, {:,}".format(*sizes),
                    "p ≤ .05": f"{told}/{repeats} [{low:.3f}, {high:.3f}]",
                }
            )
            print(rows[-1], flush=True)
    record("audit_sides", rows, notes="MNIST, 20 components; near copies have noise of .05; Wilson's intervals at 95 %")


def jittered(rows, rng):
    return (rows + 0.05 * rng.standard_normal(rows.shape)).astype(np.float32)


def side_p_value(x, sizes, make, rng):
    """Draw three sets and return the p-value of "as often nearer to the holdout", by calibrated distances."""
    drawn = np.split(x[rng.permutation(len(x))[: sum(sizes)]], np.cumsum(sizes)[:2])
    gen, train, holdout = map(as_embeddings, (make(drawn[0], rng), *drawn[1:]))
    to_train = nearest(gen, train, CALIBRATION_NEIGHBORS), nearest(holdout, train, CALIBRATION_NEIGHBORS)
    near = Nearness({"calibrated": Near.of(*to_train)})
    every = {"gen": gen, "train": train, "holdout": holdout}
    return find_sides(every, near, CALIBRATION_NEIGHBORS, AuditSettings(), Run())["calibrated"].p_value()


def power(repeats=200):
    """Record how often planted copies are found, and the power that the audit prints."""
    x = mnist()
    if x is None:
        return
    rng, alpha = np.random.default_rng(3), MEASURES_PART * AUDIT_ALPHA / 7
    seen, printed = {}, {}
    for _ in range(repeats):
        sets = parts(x, rng)
        train = as_embeddings(sets["train"])
        spacings = radii(train, 1).squared ** 0.5
        fresh, other = (
            Closeness.of(found.distances, spacings[found.indices[:, 0]]).calibrated
            for found in (nearest(sets[name], train, CALIBRATION_NEIGHBORS) for name in ("holdout", "gen"))
        )
        n = len(other)
        for line in power_table(train, spacings, fresh, n, neighbors=CALIBRATION_NEIGHBORS, alpha=alpha, seed=0):
            key = line.kind, line.share
            printed.setdefault(key, []).append(line.probability)
            copies = plant_copies(train, spacings, COPY_NOISES[line.kind], rng)
            scores = calibrated_distances(nearest(copies, train, CALIBRATION_NEIGHBORS).distances)[: line.copies]
            if len(scores) == line.copies:
                made = np.concatenate([scores, other[line.copies :]])
                seen.setdefault(key, []).append(tail_p_value(made, fresh) <= alpha)
    rows = [
        {
            "kind": kind,
            "copies": f"{100 * share:g} %",
            "found": f"{np.mean(seen[kind, share]):.2f}",
            "printed, mean": f"{np.mean(lines):.2f}",
            "printed, from": f"{min(lines):.2f}",
            "to": f"{max(lines):.2f}",
        }
        for (kind, share), lines in printed.items()
        if (kind, share) in seen
    ]
    for row in rows:
        print(row, flush=True)
    record("audit_power", rows, notes=f"MNIST, {repeats} random splits of 8 000 images in four, at α = .025/7")


def speed(n=50_000, dim=1024):
    """Time an audit of sets of n features like a network's: not negative, of 40 directions and noise."""
    rng = np.random.default_rng(4)
    weights = rng.standard_normal((40, dim), dtype=np.float32) / 6

    def features():
        base = rng.standard_normal((n, 40), dtype=np.float32) @ weights
        return np.maximum(base + 0.3 * rng.standard_normal((n, dim), dtype=np.float32), 0)

    sets = [features() for _ in range(4)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    start, began, rows = time.perf_counter(), {}, []

    def progress(stage, done, total):
        began.setdefault(stage, time.perf_counter())
        if done == total:
            rows.append({"stage": stage, "seconds": round(time.perf_counter() - began[stage], 1)})
            print(rows[-1], flush=True)

    found = fe.audit(*sets, run=Run(progress=progress))
    print(found)
    rows.append({"stage": "all", "seconds": round(time.perf_counter() - start, 1)})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    record(
        "audit_speed",
        rows,
        notes=f"four sets of {n:,} x {dim}, {4 * n * dim * 4 / 1e9:.1f} GB of embeddings; peak {peak:.1f} GB, "
        f"{before:.1f} GB of it before the audit; {torch.get_num_threads()} threads",
    )


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["planted", "null", "sides", "power", "altered"]
    for name in wanted:
        {"planted": planted, "null": null, "sides": sides, "power": power, "altered": altered, "speed": speed}[name]()
