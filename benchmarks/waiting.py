"""Measure how long first calls and commands take, and what they load: each in a new process, with its imports.

Calls and commands on 300 + 300 rows of 32 numbers, and on 100 photographs of 64 px in memory (smooth noise, embedded by
the default extractor and not yet in the cache). Then, with the test assets (FINC_EVAL_ASSETS), commands on digits that
are embedded by pixels, d = 784: `gate --init` of a baseline of 1 000, which also stands for the release, and a
reference of 2 000; `leaderboard` of five models of 1 000 and a reference of 2 000, with its page.

Wall time, CPU time and peak memory of the process, and which large packages are in its `sys.modules` at its end.

`verbs` says what part of each verb is the mathematics that it exists for, and what is bookkeeping, by samples a
set: clusters in 128 entries, and for `extract` pictures of 32 px by pixels.
`peers` holds what is long against what a user would take otherwise, by turns in one process with one thread.

    python benchmarks/waiting.py [first verbs peers] [400 10000 50000]        default: all, of the first two sizes
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import torch
from _real import asset, mnist
from _record import record
from finc_scaling import FEATURES, mixture
from PIL import Image

N, PHOTOGRAPHS = 1000, 100
LARGE = [
    "torch",
    "timm",
    "torchvision",
    "h5py",
    "scipy",
    "sklearn",
    "sknetwork",
    "faiss",
    "matplotlib",
    "pandas",
    "av",
    "PIL",
    "jinja2",
    "typer",
]
TELLING = (
    "import atexit, sys\n"
    "def tell():\n"
    "    peak, = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')]\n"
    f"    with open('told', 'w') as file: print(peak, *[name for name in {LARGE} if name in sys.modules], file=file)\n"
    "atexit.register(tell)\n"
)
COMMAND = "from finc_eval.cli import main; main()"
PAIR = ["--gen", "gen.npy", "--ref", "other.npy"]
FIRST = {
    "import torch": ["import torch"],
    "import finc_eval": ["import finc_eval"],
    "finc-eval --help": [COMMAND, "--help"],
    "finc-eval compare --help": [COMMAND, "compare", "--help"],
    "fe.compare of arrays": [
        "import numpy as np, finc_eval as fe; fe.compare(np.load('gen.npy'), np.load('other.npy'))"
    ],
    "finc-eval compare of two .npy, with its page": [COMMAND, "compare", *PAIR, "--out", "compared"],
    "finc-eval metrics --metrics fd of two .npy": [COMMAND, "metrics", *PAIR, "--metrics", "fd"],
    "fe.extract of 100 photographs": ["import numpy as np, finc_eval as fe; fe.extract(np.load('photos.npy'))"],
}
EMBEDDED = {
    "finc-eval gate --init, 1,000 and a reference of 2,000": [
        "gate",
        "--init",
        "--baseline",
        "one.npy",
        "--ref",
        "ref.npy",
    ],
    "finc-eval leaderboard, 5 × 1,000 and a reference of 2,000": [
        "leaderboard",
        "--ref",
        "ref.npy",
        *(f"{name}={name}.npy" for name in ("one", "two", "three", "four", "five")),
    ],
}


def write_sets():
    """Write the sets of the first calls to the working folder."""
    rng = np.random.default_rng(0)
    for name in ("gen", "other"):
        np.save(f"{name}.npy", rng.standard_normal((300, 32), np.float32))
    noise = rng.integers(0, 256, (PHOTOGRAPHS, 8, 8, 3), np.uint8)
    np.save(
        "photos.npy", [np.asarray(Image.fromarray(one).resize((64, 64), Image.Resampling.BICUBIC)) for one in noise]
    )


def write_digits(digits):
    """Write the sets of digits to the working folder."""
    digits = digits[np.random.default_rng(0).permutation(len(digits))]
    for number, name in enumerate(("one", "two", "three", "four", "five")):
        np.save(f"{name}.npy", digits[number * N : (number + 1) * N])
    np.save("ref.npy", digits[5 * N : 7 * N])


def measured(command, code, *words):
    """Run a program in a process, and return its row."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", TELLING + code, *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"{command} ended with {status}")
    peak, *loaded = Path("told").read_text().split()
    row = {
        "command": command,
        "s": round(seconds, 1),
        "CPU s": round(used.ru_utime + used.ru_stime, 1),
        "peak, GB": round(int(peak) * 1024 / 1e9, 2),
        "loads": ", ".join(loaded),
    }
    print(row, flush=True)
    return row


SIZES = (400, 10_000)  # 50 000 take 25 minutes of processor time
VERB = """
import json, sys
sys.path.insert(0, {here!r})
from _profile import Sampler
with Sampler() as sampler:
    try:
        from finc_eval.cli import main
        main()
    except SystemExit as end:
        if end.code not in (None, 0, 1, 2):
            raise
where, seconds = sampler.largest()
with open("profile.json", "w") as file:
    json.dump({{"parts": sampler.parts, "largest": where, "its": seconds}}, file)
"""
INIT = ["gate", "--init", "--baseline", "third.npy", "--ref", "other.npy"]
VERBS = {
    "extract": ["extract", "pictures.npz", "--extractor", "pixels", "--out", "made.h5", "--force"],
    "compare": ["compare", *PAIR, "--out", "out", "--force"],
    "kinds": ["kinds", "gen=gen.npy", "other=other.npy", "--out", "out", "--force"],
    "metrics": ["metrics", *PAIR, "--metrics", "fd,precision_recall", "--out", "out", "--force"],
    "gate": ["gate", "--gen", "gen.npy", "--baseline", "third.npy", "--ref", "other.npy", "--out", "out", "--force"],
    "leaderboard": [
        *("leaderboard", "--ref", "other.npy", "one=gen.npy", "two=third.npy"),
        *("--metrics", "fd", "--out", "out", "--force"),
    ],
    "monitor": [
        *("monitor", "third.npy", "gen.npy", "--step", "third=1", "--step", "gen=2"),
        *("--ref", "other.npy", "--out", "out.html", "--force"),
    ],
    "audit": ["audit", "--gen", "gen.npy", "--train", "other.npy", "--holdout", "third.npy", "--out", "out", "--force"],
    "evaluate": ["evaluate", *PAIR, "--out", "out", "--force"],
}


def write_clusters(n):
    """Write three sets of clusters, the first with one more, and pictures, to the working folder."""
    rng = np.random.default_rng(0)
    centers = 3 * rng.standard_normal((20, 128), np.float32)
    for name, clusters in (("gen", 20), ("other", 19), ("third", 19)):
        np.save(f"{name}.npy", centers[rng.integers(0, clusters, n)] + rng.standard_normal((n, 128), np.float32))
    np.savez("pictures.npz", rng.integers(0, 256, (n, 32, 32, 3), np.uint8))
    Path("gate.toml").unlink(missing_ok=True)
    subprocess.run([sys.executable, "-c", COMMAND, *INIT], stdout=subprocess.DEVNULL, check=True)


def verb_rows(*sizes):
    """Return a row for each verb and size: the seconds of the processor, and the percent of each part."""
    rows = []
    for n in sizes or SIZES:
        write_clusters(n)
        for verb, words in VERBS.items():
            code = VERB.format(here=str(Path(__file__).parent))
            whole = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
            if whole.returncode:
                raise SystemExit(f"{verb} ended with {whole.returncode}: {whole.stderr[-2000:]}")
            found = json.loads(Path("profile.json").read_text())
            seconds = sum(found["parts"].values())
            percents = {part: f"{100 * value / seconds:.0f} %" for part, value in found["parts"].items()}
            largest = f"{found['largest']} ({found['its']:.1f} s)"
            rows.append({"verb": verb, "samples a set": n, "CPU s": round(seconds, 1), **percents, "longest": largest})
            print(rows[-1], flush=True)
    return rows


def plain_finc(gen, ref):
    """Compute FINC's ten leading directions and all scores as a user of torch would: whole covariances, and `eigh`."""
    frequencies = torch.randn(gen.shape[1], FEATURES) / (torch.pdist(ref[:1000]).median() / 2)

    def features(rows):
        phases = rows @ frequencies
        return torch.cat([phases.cos(), phases.sin()], 1) / FEATURES**0.5

    covariances = []
    for rows in (gen, ref):
        total = torch.zeros(2 * FEATURES, 2 * FEATURES)
        for batch in rows.split(2048):
            part = features(batch)
            total += part.T @ part
        covariances.append(total / len(rows))
    vectors = torch.linalg.eigh(covariances[0] - covariances[1]).eigenvectors[:, -10:]
    return [torch.cat([features(batch) @ vectors for batch in rows.split(2048)]) for rows in (gen, ref)]


def photographs(count):
    """Return pictures of 64 px of Tiny-ImageNet, (count, 64, 64, 3); None without the test assets."""
    path = asset("photos", "tiny_imagenet_24x300.zip")
    if path is None:
        return None
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".JPEG"))
        drawn = [names[place] for place in np.random.default_rng(0).permutation(len(names))[:count]]
        return np.stack([np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("RGB")) for name in drawn])


def peers():
    """Yield what is measured, our function, and what a user would take otherwise, or None."""
    import finc_eval as fe

    gen, ref = (np.concatenate([*mixture(10_000, 768, clusters, seed)]) for clusters, seed in ((20, 1), (15, 2)))
    tensors = torch.from_numpy(gen), torch.from_numpy(ref)
    yield (
        "compare, 10,000 + 10,000 × 768, r = 2,000, and the directions alone in plain torch",
        lambda: fe.compare(gen, ref, features=FEATURES),
        lambda: plain_finc(*tensors),
    )
    rng = np.random.default_rng(0)
    wide = [np.maximum(rng.standard_normal((10_000, 2048), np.float32), 0) for _ in range(2)]

    def fidelity():
        from torch_fidelity.metric_kid import kid_features_to_metric

        how = {"kid_subsets": 100, "kid_subset_size": 1000, "rng_seed": 2020, "verbose": False}
        return kid_features_to_metric(*map(torch.from_numpy, wide), **how)

    name = "KID with its interval, 10,000 + 10,000 × 2,048, and torch-fidelity's"
    yield name, partial(fe.metrics, *wide, ["kid"]), fidelity
    if (pictures := photographs(1100)) is not None:
        copied = pictures[:300].copy()
        copied[:15] = pictures[300:315, :, ::-1]
        for name, made in (("no", pictures[:300]), ("15 mirrored", copied)):
            sets = [fe.extract(part) for part in (made, pictures[300:700], pictures[700:])]
            yield f"audit of 300 + 400 + 400 photographs of 64 px with {name} copies", partial(audit_anew, sets), None


def audit_anew(sets):
    """Audit sets without the views that an earlier turn embedded."""
    import finc_eval as fe

    kept = {Path(cache.path) for cache in sets}
    for path in {*Path(os.environ["FINC_EVAL_CACHE"]).glob("*.h5")} - kept:
        path.unlink()
    return fe.audit(*sets)


def peer_rows(turns=3):
    """Return a row for each: the seconds of the processor, by turns in this process with one thread."""
    torch.set_num_threads(1)
    rows = []
    for what, ours, theirs in peers():
        found = {"ours": [], "other": []}
        for _ in range(turns):
            for name, work in (("ours", ours), ("other", theirs)):
                if work is not None:
                    began = time.process_time()
                    work()
                    found[name].append(time.process_time() - began)
        row = {"what": what, "CPU s": f"{np.median(found['ours']):.1f}", "otherwise, CPU s": "", "ratio": ""}
        if theirs is not None:
            ratios = np.divide(found["ours"], found["other"])
            row |= {
                "otherwise, CPU s": f"{np.median(found['other']):.1f}",
                "ratio": f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})",
            }
        rows.append(row)
        print(row, flush=True)
    return rows


def first_rows():
    """Return a row for each first call and command."""
    write_sets()
    rows = [measured(command, *program) for command, program in FIRST.items()]
    if (found := mnist()) is not None:
        write_digits(found[0])
        rows += [measured(command, COMMAND, *words) for command, words in EMBEDDED.items()]
    return rows


RECORDS = {
    "first": ("waiting", first_rows, "Wall and CPU time and peak memory of a process, and what it loads."),
    "verbs": (
        "waiting_verbs",
        verb_rows,
        "CPU seconds of a command with its page, imports included, and what part of them went where; the longest "
        "function outside of the mathematics.",
    ),
    "peers": ("waiting_peers", peer_rows, "CPU seconds by turns in one process, one thread, medians of three."),
}


def main(*parts):
    sys.argv[0] = str(Path(__file__).resolve())  # the record names it, from another folder
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["FINC_EVAL_CACHE"] = f"{folder}/cache"
        sizes = [int(part) for part in parts if part.isdigit()]
        for part in [part for part in parts if not part.isdigit()] or RECORDS:
            name, rows, notes = RECORDS[part]
            record(name, rows(*sizes) if part == "verbs" else rows(), notes)


if __name__ == "__main__":
    main(*sys.argv[1:])
