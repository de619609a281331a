"""`Embedder`: an extractor as a class that is called with a batch, as data engines call it. It keeps no files."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from itertools import repeat
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.memory import numbered
from finc_eval.core.run import Run
from finc_eval.embeddings.job import decode_batches, default_batch_size, unreadable_error
from finc_eval.embeddings.recipe import space_of
from finc_eval.engines.columns import samples_in
from finc_eval.extractors.card import NetworkPrecision
from finc_eval.extractors.catalog import DEFAULT_EXTRACTOR, load_card
from finc_eval.samples.clip_source import ClipSource, check_clips, decode_windows, windows_of_row
from finc_eval.samples.clips import Clip
from finc_eval.samples.in_memory import part, to_pixels
from finc_eval.samples.metadata import Metadata
from finc_eval.samples.opening import open_source
from finc_eval.samples.reading import EVERYTHING, STORED, Color, Reading
from finc_eval.samples.rows import is_tensor, tensor_values
from finc_eval.samples.source import RandomAccessSource, Sample, Source, reason
from finc_eval.samples.video_process import read_windows

if TYPE_CHECKING:
    from finc_eval.extractors.network import CardNetwork

BATCH = "the batch"  # name of a batch in messages
NO_SAMPLE = "the sample is missing"  # why a null value has a row of NaN


class Embedder:
    """An extractor that is called with batches: images or clips become an array (n, d), and no file is written.

    It has the same rows as `extract`: equal bits for equal batches, and differences of 1e-5 between batch sizes. It is
    for data engines, which call a class on each worker (docs/scale_engines.md). A pickle of it names the weights by
    their file and digest, and has none of them. Each process loads the network at its first batch, on its own device.

    Args:
        extractor: name of an extractor, "timm:NAME", or the path of a card ending in .toml.
        precision: arithmetic of the network, as in `extract`.
        fps: frames a second to which videos are resampled first; default: as the card says.
        range: the numbers that are black and white, such as (-1, 1), in arrays and tensors.
        color: "srgb" to convert encoded images to sRGB by their color profile; default: as they are stored.
        strict: whether a sample that is missing or cannot be read is an error. Otherwise its row is NaN: leave these
            rows out.
        run: device, samples per pass, and threads that decode; default: of the process that is called.

    Attributes:
        dim: d, number of entries of a row.
        space: name and digest of the extractor, as `SketchSum` takes it.

    Raises:
        UsageError: the extractor is unknown, or an option is out of range.
        DataError: the weights are missing, or others than where the embedder was made.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> embedder = fe.Embedder("pixels")
        >>> images = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
        >>> rows = embedder(images)
        >>> rows.shape, rows.dtype
        ((5, 2352), dtype('float32'))
    """

    def __init__(
        self,
        extractor: str | Path = DEFAULT_EXTRACTOR,
        *,
        precision: NetworkPrecision = "float32",
        fps: float | None = None,
        range: tuple[float, float] | None = None,
        color: Color = STORED,
        strict: bool = True,
        run: Run | None = None,
    ) -> None:
        self._card = load_card(extractor).resampled(fps)
        self._precision, self._strict, self._run = precision, strict, Run.of(run)
        self._reading = Reading(range=range, color=color)
        if self._card.clip is not None and self._reading != EVERYTHING:
            raise UsageError(f"range and color are for images, and {self._card.name} takes clips: leave them out")
        self.space = space_of(self._card, precision)
        self.dim = self._card.output.dimension

    def __call__(self, batch: Any) -> NDArray[np.float32]:
        """Embed a batch.

        Args:
            batch: list, column or array of n samples. An image is a uint8 array or tensor, a Pillow image, the bytes of
                a file, or a path. A clip is a uint8 array of shape (frames, height, width, 3), or the bytes of a video.
                A dictionary has them under a usual name, such as "image".

        Returns:
            Embeddings, (n, d) float32, in the order of the batch; (n · w, d) for a card of w windows per clip.

        Raises:
            DataError: a sample is missing or cannot be read and the embedder is strict, or an embedding is not finite.
            UsageError: the batch is not a list of samples, or a dictionary without a usual name of images.
        """
        items = samples_in(batch, BATCH)
        if not len(items):
            return np.empty((0, self.dim), np.float32)
        samples = self._opened(items)
        rows, failures = self._rows(samples)
        if failures and self._strict:
            raise unreadable_error(BATCH, failures)
        return rows

    def looks(self, batch: Any) -> dict[str, NDArray[np.float64]]:
        """Measure what every eye sees of the images of a batch, and the columns that are registered in this process.

        `SketchSum.add` takes them as columns: a comparison of sums then says looks, such as "blurred", by their words.
        A watermark, and pictures upside down, are seen only in the pictures themselves.

        Args:
            batch: images, as `__call__` takes them.

        Returns:
            An array (n,) for each look, by the name of its column, such as "look sharpness"; NaN for a sample that
            cannot be read, unless the embedder is strict.

        Raises:
            DataError: a sample is missing or cannot be read and the embedder is strict.
            UsageError: the extractor takes clips, or the batch is not a list of samples.

        Example:
            >>> import numpy as np
            >>> import finc_eval as fe
            >>> images = np.zeros((2, 32, 32, 3), np.uint8)
            >>> images[1, ::2] = 255
            >>> fe.Embedder("pixels").looks(images)["look brightness"].round(2).tolist()
            [0.0, 0.5]
        """
        from finc_eval.engines.looks import looks_of_images

        if self._card.clip is not None:
            raise UsageError(f"looks are of images, and {self._card.name} takes clips: embed them by motion instead")
        items = samples_in(batch, BATCH)
        found, failures = looks_of_images(self._opened(items) if len(items) else None)
        if failures and self._strict:
            raise unreadable_error(BATCH, failures)
        return found

    def _opened(self, items: Any) -> Source:
        clip = self._card.clip
        if isinstance(items, np.ndarray):
            return open_source(items, clip=clip, **self._reading.choices)
        return _Images(items, self._reading) if clip is None else _Clips(items, clip)

    def _rows(self, samples: Source) -> tuple[NDArray[np.float32], list[tuple[str, str]]]:
        """Return a row for each sample, and which samples cannot be read and why."""
        from finc_eval.core.device import send  # torch takes seconds to import

        network, how, run, start = self._network, self._card.preprocessing, self._run, 0
        rows, failures = np.full((len(samples.ids), self.dim), np.nan, np.float32), list[tuple[str, str]]()
        size = run.batch_size or default_batch_size(self._card, network.device)
        place = partial(send, device=network.device)
        with closing(decode_batches(samples, 0, size, how, run.workers, place)) as batches:
            for batch in batches:
                failures += [(name, why) for name, why in zip(batch.ids, batch.errors, strict=True) if why is not None]
                if batch.pixels is not None:
                    made = network(batch.pixels, batch.times)[:, : self.dim].cpu().numpy()
                    if len(bad := np.flatnonzero(~np.isfinite(made).all(axis=1))):
                        raise DataError(
                            f"the embedding of sample {batch.ids[batch.readable[bad[0]]]} of {BATCH} by "
                            f"{self._card.name} holds NaN or infinity: remove the sample, or check the precision"
                        )
                    rows[start + batch.readable] = made
                start += len(batch.ids)
        return rows, failures

    @cached_property
    def _network(self) -> CardNetwork:
        from finc_eval.extractors.network import CardNetwork

        if (here := space_of(self._card, self._precision)) != self.space:
            raise DataError(
                f"the weights of {self._card.name} make the space {here} on this machine, and {self.space} where the "
                "embedder was made: copy the same file of weights to all machines"
            )
        return CardNetwork(replace(self._card, cells=None), self._run.device, self._precision)

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the network, which each process loads."""
        return {name: value for name, value in vars(self).items() if name != "_network"}

    def __repr__(self) -> str:
        return f"Embedder({self.space!r}, dim={self.dim})"


class _Images(RandomAccessSource):
    """The images of a batch, of any forms."""

    kind = "batch"

    def __init__(self, items: Sequence[Any], reading: Reading) -> None:
        super().__init__(BATCH, numbered(len(items), BATCH), {})
        self._items, self.reading = items, reading

    def sample(self, number: int) -> Sample:
        who = f"sample {number} of {BATCH}"
        try:
            image, _ = part(self._items[number], who)
            if image is None:
                return Sample(self.ids[number], None, NO_SAMPLE)
            if isinstance(image, str | PathLike) and not Path(image).exists():
                return Sample(self.ids[number], None, f"{image} does not exist")
            pixels, encoding = to_pixels(image, who, self.reading)
        except (DataError, MemoryError):
            raise
        except Exception as error:  # decoders raise almost anything on damaged bytes
            return Sample(self.ids[number], None, reason(error))
        return Sample(self.ids[number], pixels, None, encoding)

    def content(self, number: int) -> bytes:
        return b""


class _Clips(ClipSource):
    """The clips of a batch: arrays of frames, and encoded videos."""

    kind = "batch"

    def __init__(self, items: Sequence[Any], clip: Clip) -> None:
        super().__init__(BATCH, numbered(len(items), BATCH), clip, {}, Metadata(None, None))
        self._items = [self._known(item, f"sample {number} of {BATCH}") for number, item in enumerate(items)]

    @staticmethod
    def _known(item: Any, who: str) -> Any:
        """Return the bytes of a video, a checked array of frames, or None for a missing value."""
        if item is None or isinstance(item, bytes):
            return item
        if isinstance(item, str | PathLike):
            raise DataError(f"{who} is the path {item}: pass the bytes of the video, or its frames as a uint8 array")
        array = tensor_values(item, who) if is_tensor(item) else np.asarray(item)
        check_clips((1, *array.shape), array.dtype, who)
        return array

    def windows(self, video: int, windows: Sequence[int], names: Sequence[str]) -> Iterator[Sample]:
        item = self._items[video]
        if item is None:
            return (Sample(name, None, NO_SAMPLE) for name in names)
        if isinstance(item, bytes):
            return decode_windows(names, read_windows(io.BytesIO(item), self._clip, windows), repeat(b""))
        return windows_of_row(names, item, self._clip, windows, b"")

    def window_contents(self, video: int, windows: Sequence[int]) -> list[bytes]:
        return [b""] * len(windows)
