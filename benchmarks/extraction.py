"""Speed of embedding images: finc-eval, torch-fidelity, and a plain loop of Pillow, DataLoader and timm.

All run one network on the same images in one run: EfficientNet-Lite0 with its trained weights on 500 photographs, and
the FID Inception with random weights. Needs the test assets (FINC_EVAL_ASSETS) and the package torch-fidelity.

    python benchmarks/extraction.py
    python benchmarks/extraction.py cost [PYTHON]     what whole processes cost, by turns: finc-eval, a plain loop, and
                                                      finc-eval of another checkout, whose Python is named
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from importlib import resources
from pathlib import Path

import numpy as np
import timm
import torch
from _real import asset
from _record import record
from PIL import Image
from torchvision import transforms

import finc_eval as fe
from finc_eval.core.run import WORKERS
from finc_eval.embeddings.job import decode_batches
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.network import CardNetwork
from finc_eval.extractors.preprocess import normalize_values
from finc_eval.extractors.weights import check_weights
from finc_eval.samples.opening import open_source

BATCH, ROUNDS, FEW = 50, 3, 100
PLAIN_BATCH, PLAIN_WORKERS = 32, 2  # as users write it
SMALL, SMALL_SIDE = 600, 64  # photographs that are made small, and their sides


class Photographs(torch.utils.data.Dataset):
    def __init__(self, folder, transform):
        self.paths, self.transform = [folder / name for name in open_source(folder).ids], transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with Image.open(self.paths[index]) as image:
            return self.transform(image.convert("RGB"))


def ours(folder, extractor, out):
    out.unlink(missing_ok=True)
    return np.asarray(fe.extract(folder, extractor, out, run=fe.Run(batch_size=BATCH)))


@torch.inference_mode()
def plain_loop(folder, workers, batch=BATCH):
    """Embed as people write it themselves: torchvision's transforms, a DataLoader, and timm."""
    card = load_card("efficientnet-lite0")
    model = timm.create_model("tf_efficientnet_lite0", pretrained=False).eval()
    tensors = torch.load(check_weights(card)[0], weights_only=True)
    model.load_state_dict(dict(zip(model.state_dict(), tensors.values(), strict=True)))
    model.reset_classifier(0)
    transform = transforms.Compose(plain_transform())
    loader = torch.utils.data.DataLoader(Photographs(folder, transform), batch, num_workers=workers)
    return torch.cat([model(batch) for batch in loader])


@torch.inference_mode()
def stages(folder, extractor):
    """Return images per second of each stage alone: reading and hashing, decoding and resizing, moving, the network."""
    card, source = load_card(extractor), open_source(folder)
    n = len(source.ids)
    started = time.perf_counter()
    source.manifest()
    hashed = time.perf_counter()
    batches = list(decode_batches(source, 0, BATCH, card.preprocessing, WORKERS))
    decoded = time.perf_counter()
    for batch in batches:
        normalize_values(batch.pixels, card.preprocessing)
    moved = time.perf_counter()
    embed = CardNetwork(card)
    made = time.perf_counter()
    for batch in batches:
        embed(batch.pixels)
    embedded = time.perf_counter()
    spent = {
        "check samples": hashed - started,
        "decode and resize": decoded - hashed,
        "normalize": moved - decoded,
        "network": embedded - made - (moved - decoded),
    }
    return [
        {"stage": stage, "images/s": f"{n / seconds:.0f}", "share": f"{seconds / sum(spent.values()):.2f}"}
        for stage, seconds in spent.items()
    ]


def decoding(folder):
    """Return images per second of decoding and resizing alone."""
    how, source = load_card("efficientnet-lite0").preprocessing, open_source(folder)

    def threads(workers):
        return sum(1 for _ in decode_batches(source, 0, BATCH, how, workers))

    def processes(workers):
        transform = transforms.Compose([*plain_transform()[:2], transforms.PILToTensor()])
        return sum(1 for _ in torch.utils.data.DataLoader(Photographs(folder, transform), BATCH, num_workers=workers))

    ways = {f"{count} threads": (threads, count) for count in (1, WORKERS)}
    ways |= {f"DataLoader, {count} processes": (processes, count) for count in (1, WORKERS)}
    seconds = {way: best(*call) for way, call in ways.items()}
    return [{"way": way, "images/s": f"{len(source.ids) / spent:.0f}"} for way, spent in seconds.items()]


def plain_transform():
    return [
        transforms.Resize(256, transforms.InterpolationMode.BICUBIC),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize([127 / 255] * 3, [128 / 255] * 3),
    ]


def best(function, *arguments):
    """Return the shortest of a few rounds: other work on the machine only ever adds time."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - started)
    return min(times)


def measured(network, way, n, seconds):
    return {"network": network, "way": way, "images/s": f"{n / seconds:.1f}", "seconds": f"{seconds:.2f}"}


def main():
    archive = asset("photos", "imagenet_500.zip")
    if archive is None:
        return
    with tempfile.TemporaryDirectory() as name:
        temporary = Path(name)
        folder = temporary / "photos"
        with zipfile.ZipFile(archive) as photos:
            photos.extractall(folder)
        n = len(open_source(folder).ids)
        rows = ours(folder, "efficientnet-lite0", temporary / "lite0.h5")
        error = np.abs(rows - plain_loop(folder, 0).numpy()).max() / np.abs(rows).max()
        ways = {"finc-eval": (ours, folder, "efficientnet-lite0", temporary / "lite0.h5")}
        ways |= {f"Pillow, DataLoader({workers}), timm": (plain_loop, folder, workers) for workers in (0, WORKERS)}
        table = [
            measured("EfficientNet-Lite0", way, n, best(*call)) | {"largest difference": f"{error:.0e}"}
            for way, call in ways.items()
        ]
        table += inception(folder, temporary)
        notes = f"batches of {BATCH}; the best of {ROUNDS} rounds, from files to embeddings, start included"
        record("extraction", table, f"{n} and {FEW} photographs, {notes}")
        record(
            "extraction_decoding", decoding(folder), f"{n} photographs, center crop 224, the best of {ROUNDS} rounds"
        )
        record("extraction_stages", stages(folder, "efficientnet-lite0"), "each stage alone, EfficientNet-Lite0")


def inception(folder, temporary):
    """Compare finc-eval with torch-fidelity's own loop on the FID Inception, with the same random weights in both.

    The photographs are resized to one size, which torch-fidelity needs.
    """
    from torch_fidelity.datasets import ImagesPathDataset
    from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3
    from torch_fidelity.utils import get_featuresdict_from_dataset

    squares = temporary / "squares"
    squares.mkdir()
    for path in Photographs(folder, None).paths[:FEW]:
        with Image.open(path) as image:
            image.convert("RGB").resize((256, 256)).save(squares / f"{path.stem}.png")
    card, weights = random_inception(temporary)
    theirs = FeatureExtractorInceptionV3("inception", ["2048"], str(weights))
    files = ImagesPathDataset(sorted(map(str, squares.iterdir())))
    rows = ours(squares, card, temporary / "inception.h5")
    expected = get_featuresdict_from_dataset(files, theirs, BATCH, False, False, False)["2048"].numpy()
    error = np.abs(rows - expected).max() / np.abs(expected).max()
    ways = {
        "finc-eval": (ours, squares, card, temporary / "inception.h5"),
        "torch-fidelity": (get_featuresdict_from_dataset, files, theirs, BATCH, False, False, False),
    }
    return [
        measured("FID Inception", name, FEW, best(*way)) | {"largest difference": f"{error:.0e}"}
        for name, way in ways.items()
    ]


def random_inception(temporary):
    """Return a copy of the card inception-fid with random weights, and the file of these weights."""
    from finc_eval.extractors.networks.fid_inception import FidInception

    torch.manual_seed(0)
    weights = temporary / "random.pth"
    network = FidInception()
    for module in network.modules():
        # torch's own initialization fades to nothing in so many layers, and anything would agree.
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight)
    torch.save(network.state_dict(), weights)
    text = (resources.files("finc_eval.extractors.cards") / "inception-fid.toml").read_text()
    card = temporary / "random-inception.toml"
    table = f'[weights]\nfile = "{weights}"\nlicense = "none"\n\n'
    card.write_text(re.sub(r"\[weights\].*?\n\n", table, text, flags=re.DOTALL))
    return card, weights


def cost(other=None):
    """Record CPU seconds, wall time and peak memory of processes that embed photographs, medians of rounds by turns."""
    archive, more = asset("photos", "imagenet_500.zip"), asset("photos", "tiny_imagenet_24x300.zip")
    if archive is None or more is None:
        return
    rows = []
    with tempfile.TemporaryDirectory() as name:
        temporary = Path(name)
        for what, folder in photographs(temporary, archive, more).items():
            extraction = ["-m", "finc_eval", "extract", folder, "--out", temporary / "out.h5", "--force", "--quiet"]
            ways = {"finc-eval": [sys.executable, *extraction]}
            ways["timm, DataLoader"] = [sys.executable, __file__, "plain", folder]
            ways |= {f"finc-eval {commit_of(other)}": [other, *extraction]} if other else {}
            spent = {way: [] for way in ways}
            for number in range(ROUNDS):
                for way, command in ways.items():
                    (temporary / "out.h5").unlink(missing_ok=True)
                    environment = {**os.environ, "FINC_EVAL_CACHE": str(temporary / f"{number}{way}")}
                    spent[way].append(process(command, environment))
                    print(what, way, spent[way][-1], flush=True)
            middle = {way: [statistics.median(each) for each in zip(*runs, strict=True)] for way, runs in spent.items()}
            for way, (cpu, wall, peak) in middle.items():
                share = f"{middle['finc-eval'][0] / cpu:.2f}"
                row = {"CPU s": f"{cpu:.1f}", "s": f"{wall:.1f}", "peak, GB": f"{peak:.2f}", "finc-eval's CPU": share}
                rows.append({"photographs": what, "way": way, **row})
    plain = f"batches of {PLAIN_BATCH} and {PLAIN_WORKERS} workers in the plain loop"
    record("extraction_cost", rows, f"EfficientNet-Lite0, a process each, start included; medians of {ROUNDS}; {plain}")


def photographs(temporary, archive, more):
    """Return folders by what they hold: photographs as they are, and more of them made small."""
    large, small = temporary / "large", temporary / "small"
    small.mkdir()
    for place, folder in ((archive, large), (more, temporary / "more")):
        with zipfile.ZipFile(place) as photos:
            photos.extractall(folder)
    paths = [path for folder in (large, temporary / "more") for path in Photographs(folder, None).paths]
    for number, path in enumerate(paths[:SMALL]):
        with Image.open(path) as image:
            image.convert("RGB").resize((SMALL_SIDE, SMALL_SIDE)).save(small / f"{number:03}.jpg", quality=95)
    return {f"{SMALL} of {SMALL_SIDE} px": small, f"{len(Photographs(large, None))} of 256 px": large}


def commit_of(python):
    """Return the commit of the checkout that a Python has finc-eval from."""
    ask = "import finc_eval, pathlib; print(pathlib.Path(finc_eval.__file__).parent)"
    folder = subprocess.run([python, "-c", ask], cwd="/", capture_output=True, text=True, check=True).stdout.strip()
    return subprocess.run(
        ["git", "-C", folder, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()


def process(command, environment):
    """Return CPU seconds, seconds and peak memory in GB of a command."""
    started = time.perf_counter()
    running = subprocess.Popen([*map(str, command)], env=environment, cwd="/", stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(running.pid, 0)
    if status:
        raise SystemExit(f"{command} failed")
    return used.ru_utime + used.ru_stime, time.perf_counter() - started, used.ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    if sys.argv[1:2] == ["cost"]:
        cost(*sys.argv[2:])
    elif sys.argv[1:2] == ["plain"]:
        plain_loop(Path(sys.argv[2]), PLAIN_WORKERS, PLAIN_BATCH)
    else:
        main()
