"""Speed of embedding images: finc-eval, torch-fidelity, and a plain loop of Pillow, DataLoader and timm.

All run one network on the same images in one run: EfficientNet-Lite0 with its trained weights on 500 photographs, and
the FID Inception with random weights. Needs the test assets (FINC_EVAL_ASSETS) and the package torch-fidelity.
"""

import re
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
from finc_eval.extractors.network import Embedder
from finc_eval.extractors.preprocess import normalize_values
from finc_eval.extractors.weights import check_weights
from finc_eval.samples import open_source

BATCH, ROUNDS, FEW = 50, 3, 100


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
def plain_loop(folder, workers):
    """Embed as people write it themselves: torchvision's transforms, a DataLoader, and timm."""
    card = load_card("efficientnet-lite0")
    model = timm.create_model("tf_efficientnet_lite0", pretrained=False).eval()
    tensors = torch.load(check_weights(card)[0], weights_only=True)
    model.load_state_dict(dict(zip(model.state_dict(), tensors.values(), strict=True)))
    model.reset_classifier(0)
    transform = transforms.Compose(plain_transform())
    loader = torch.utils.data.DataLoader(Photographs(folder, transform), BATCH, num_workers=workers)
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
    embed = Embedder(card)
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


if __name__ == "__main__":
    main()
