"""The working folder of a newcomer: small sets in every form, results of earlier commands, and files of their own."""

import tarfile
import zipfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import finc_eval as fe
from finc_eval.demo.planted import example_sets

SAMPLES = 120
"""Samples of each set: an audit needs a hundred."""

FEATURES = ("--features", "40")
TINY = ("--extractor", "tiny.toml")

TABLE = """
label = "ill"

[[columns]]
name = "age"
low = 0
high = 100

[[columns]]
name = "ill"
values = ["no", "yes"]
"""


def build(run):
    """Fill the working folder; `run` runs a command there."""
    gen, ref = (images_of(rows) for rows in example_sets(3 * SAMPLES))
    sets = {"gen": gen[:SAMPLES], "ref": ref[:SAMPLES], "other": gen[SAMPLES : 2 * SAMPLES]}
    sets |= {"train": ref[SAMPLES : 2 * SAMPLES], "holdout": ref[2 * SAMPLES :]}
    for name, images in sets.items():
        Path(name).mkdir()
        for number, image in enumerate(images):
            Image.fromarray(image).save(f"{name}/{number:03}.png")
    np.savez("images.npz", arr_0=gen[:SAMPLES])
    with zipfile.ZipFile("gen.zip", "w") as zipped, tarfile.open("shard-0000.tar", "w") as tar:
        for path in sorted(Path("gen").iterdir()):
            zipped.write(path, path.name)
            tar.add(path, path.name)
    embeddings()
    mistakes()
    private()
    for name in ("gen", "ref", "other"):
        run("extract", name, "--out", f"{name}.h5", *TINY)
    run("extract", "sketch", "ref.h5", "--out", "ref.sketch.h5", *FEATURES)
    for name in ("gen", "other"):
        run("compare", "--gen", f"{name}.h5", "--ref", "ref.sketch.h5", "--out", f"results/{name}", "--quiet")
    by_kinds = ("--kinds", "results/gen/comparison.h5", "--out", "later", "--quiet")
    run("compare", "--gen", "other.h5", "--ref", "ref.sketch.h5", *by_kinds)
    run("compare", "--gen", "gen", "--ref", "ref", *TINY, *FEATURES)


CARD = """
name = "tiny"
description = "The pixels of 8x8 thumbnails."
citation = "None."
traps = ["Only colors and layout."]

[loader]
kind = "pixels"

[preprocessing]
size = [8, 8]
geometry = "squash"
method = "pil"
interpolation = "bicubic"
antialias = true
rounding = "uint8"
range = [0.0, 1.0]
mean = [0.0, 0.0, 0.0]
std = [1.0, 1.0, 1.0]

[output]
layer = "input"
pooling = "flatten"
dimension = 192
"""


def images_of(rows):
    """Embeddings of pixels as gray images."""
    return (255 * rows).astype(np.uint8).reshape(-1, 28, 28)


def embeddings():
    """Files of embeddings of other programs."""
    x, y = (rows[:SAMPLES].astype(np.float32) for rows in example_sets(SAMPLES))
    np.save("x.npy", x)
    np.save("y.npy", y)
    np.savez("x.npz", embeddings=x, ids=np.array([f"sample {row}" for row in range(len(x))]))
    torch.save(torch.from_numpy(x), "x.pt")
    np.savez("stats.npz", mu=x.mean(0), sigma=np.cov(x.T))
    np.save("narrow.npy", x[:, :50])
    np.save("flat.npy", x[:, 0])
    with_hole = x.copy()
    with_hole[7, 3] = np.nan
    np.save("nan.npy", with_hole)
    np.save("few.npy", x[:5])


def mistakes():
    """Files that are not what they seem, and the newcomer's own."""
    for name in ("empty", "unreadable", "mixed", "texts", "loop", "configured", "own", "mine"):
        Path(name).mkdir()
    Path("unreadable/a.png").write_bytes(b"no picture")
    Path("unreadable/notes.txt").write_text("no picture, either")
    for path in sorted(Path("gen").iterdir())[:40]:
        (Path("mixed") / path.name).write_bytes(path.read_bytes())
    Path("mixed/broken.png").write_bytes(b"no picture")
    Path("texts/readme.md").write_text("hello")
    Image.new("RGB", (28, 28)).save("loop/a.png")
    Path("loop/up").symlink_to(Path("loop").resolve())
    Path("text").write_text("hello")
    Path("damaged.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    Path("not.h5").write_text("hello")
    Path("damaged.zip").write_bytes(b"PK\x03\x04 and no more")
    Path("damaged.npz").write_bytes(b"PK\x03\x04 and no more")
    Path("pickle.pt").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    Path("mine/reference.h5").write_text("mine")
    Path("own/notes.html").write_text("<p>mine")
    Path("own/notes.csv").write_text("mine\n")
    Path("own/notes.h5").write_text("mine")
    Path("own/comparison.html").write_text("<p>mine")
    rows = "".join(f"{number:03}.png,{number % 2}\n" for number in range(SAMPLES))
    Path("table.csv").write_text("file_name,kind\n" + rows)
    Path("nameless.csv").write_text("kind\n1\n2\n")
    Path("finc.toml").write_text("[compare]\nfeatures = 40\nmodes = 3\n[extract]\nextractor = 'tiny.toml'\n")
    Path("configured/finc-eval.toml").write_text("[compare]\nfeatures = 30\n[extract]\nextractor = 'tiny.toml'\n")
    Path("typo.toml").write_text("[compare]\nfeaturs = 40\n")
    Path("typo-table.toml").write_text("[compar]\nfeatures = 40\n")
    Path("no.toml").write_text("[compare\n")
    Path("type.toml").write_text("[run]\nworkers = 'many'\n")
    for folder in (".", "configured"):
        Path(folder, "tiny.toml").write_text(CARD)
    Path("gate.toml").write_text("basics.duplicates = 0.5\nmetrics.kid.most = 1000\n")
    Path("strict.toml").write_text("basics.duplicates = 0.5\nmetrics.kid.most = -1000\n")
    Path("card.toml").write_text("name = 'mine'\n")


def private():
    """Private data, and the public description of a table."""
    rng = np.random.default_rng(0)
    lines = [f"{rng.integers(20, 90)},{rng.choice(['no', 'yes'])}" for _ in range(200)]
    Path("patients.csv").write_text("age,ill\n" + "\n".join(lines) + "\n")
    Path("patients.toml").write_text(TABLE)
    ledger = fe.privacy.Ledger.create("spent.ledger", epsilon=1, delta=1e-5)
    public = np.load("y.npy")
    fe.privacy.release_sketch(np.load("x.npy")[:100], public=public, epsilon=1, ledger=ledger).save("ward.sketch.h5")
