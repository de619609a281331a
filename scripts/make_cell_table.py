"""Make the table of constants by which the cells of an extractor are centered and scaled, from photographs.

`python scripts/make_cell_table.py efficientnet-lite0` writes `extractors/efficientnet-lite0.cells.tsv` and prints its
digest, which the card states. Photographs: 500 of ImageNet with a short side of 256, also shrunk to 128, 64 and 32
pixels, and the last 20 of each of 24 classes of Tiny ImageNet (64 pixels), from `FINC_EVAL_ASSETS`.
"""

import hashlib
import io
import os
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import islice, product
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from finc_eval.extractors.card import Card
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.networks import load_backbone
from finc_eval.extractors.networks.cell_maps import window_statistics
from finc_eval.extractors.preprocess import normalize_values, resize_frames
from finc_eval.extractors.weights import check_weights

SIDES, PER_CLASS, BATCH = (256, 128, 64, 32), 20, 20
SOURCE = "2 480 pictures: 500 of ImageNet at 256, 128, 64 and 32 pixels, 480 of Tiny ImageNet at 64 pixels"


def photographs(folder: Path) -> Iterator[np.ndarray]:
    """Yield the photographs of a folder of archives, as arrays."""
    with zipfile.ZipFile(folder / "imagenet_500.zip") as archive:
        for side, name in product(SIDES, sorted(name for name in archive.namelist() if name.endswith(".jpg"))):
            image = Image.open(io.BytesIO(archive.read(name))).convert("RGB")
            shrink = side / min(image.size)
            size = (max(1, round(image.width * shrink)), max(1, round(image.height * shrink)))
            yield np.asarray(image if shrink == 1 else image.resize(size, Image.Resampling.BICUBIC))
    with zipfile.ZipFile(folder / "tiny_imagenet_24x300.zip") as archive:
        classes = defaultdict(list)
        for name in sorted(name for name in archive.namelist() if not name.endswith("/")):
            classes[Path(name).parent].append(name)
        for name in (name for names in classes.values() for name in names[-PER_CLASS:]):
            yield np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("RGB"))


@torch.inference_mode()
def moments(card: Card, images: Iterator[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean and the standard deviation of each number, by layer, statistic and channel."""
    layers, parts = card.cells.layers, {}
    network = load_backbone(card, torch.device("cpu"), check_weights(card)[0])

    def pool(layer: str, module: torch.nn.Module, inputs: object, maps: torch.Tensor) -> None:
        parts[layer] = window_statistics(maps, layers[layer])

    for layer in layers:
        network.get_submodule(layer).register_forward_hook(partial(pool, layer))
    count, sums = 0, 0
    while batch := [resize_frames(image, card.preprocessing) for image in islice(images, BATCH)]:
        network(normalize_values(torch.from_numpy(np.stack(batch)), card.preprocessing))
        values = torch.cat([parts[layer] for layer in layers], 2).double().flatten(0, 1)
        count += len(values)
        sums = sums + torch.stack([values.sum(0), values.square().sum(0)])
    mean = sums[0] / count
    return mean, (sums[1] / count - mean**2).sqrt()


if __name__ == "__main__":
    chosen = load_card(sys.argv[1])
    means, deviations = moments(chosen, photographs(Path(os.environ["FINC_EVAL_ASSETS"]) / "photos"))
    lines = [f"# Mean and standard deviation of the cells of {chosen.name} over {SOURCE}.", "center\tscale"]
    lines += [f"{mean:.6g}\t{deviation:.6g}" for mean, deviation in zip(means, deviations, strict=True)]
    data = ("\n".join(lines) + "\n").encode()
    (Path("extractors") / chosen.cells.table).write_bytes(data)
    print(hashlib.sha256(data).hexdigest())
