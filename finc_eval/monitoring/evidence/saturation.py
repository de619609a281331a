"""Saturation of pictures, as a monitor measures it: vivid parts weigh more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from PIL import Image

from finc_eval.monitoring.exchange import Array
from finc_eval.naming.traits import SIDE

ORDER = 8
"""Order of the mean of the saturation over the pixels of a picture: vivid parts weigh more. Of photographs whose color
is enhanced by 19 %, the mean rank moves by .24 standard deviations with the order 1, by .28 with 4 and by .30 with 8;
of those whose saturation grows by 19 %, by .27, .34 and .38. A scaled saturation scales this mean."""

DIM = 0.2  # brightest channel below which saturation is relative to this: dark pixels are else as saturated as paint


def saturation_of(images: Sequence[Image.Image]) -> Array:
    """Return the mean saturation of pictures, of the order 8 over pixels, shape (n,)."""
    small = [np.asarray(one.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)) for one in images]
    pixels = np.stack(small).reshape(len(images), -1, 3) / np.float32(255)
    channels = np.moveaxis(pixels, 2, 0)  # a reduction of so short an axis is slow
    largest, smallest = reduce(np.maximum, channels), reduce(np.minimum, channels)
    found: Array = ((largest - smallest) / np.maximum(largest, DIM)) ** ORDER
    return np.asarray(found.mean(1, dtype=np.float64) ** (1 / ORDER))
