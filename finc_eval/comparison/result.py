"""What a comparison says: its modes, the settings that made it, and its two files (HDF5 and a JSON twin)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import h5py
import numpy as np
import torch

from finc_eval.comparison.method import FINC, Method
from finc_eval.comparison.modes import Mode, Tail
from finc_eval.core.errors import FincEvalError
from finc_eval.core.serialize import Document
from finc_eval.core.signature import Signature
from finc_eval.core.storage import check_target, existing_hdf5, new_hdf5, write_text
from finc_eval.embeddings.base import Batch, as_embeddings, check_same_space
from finc_eval.feature_maps.approximation import KernelError
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.samples import Samples, open_source
from finc_eval.samples.clips import Clip
from finc_eval.sketches.feature_map_file import read_feature_map, write_feature_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

SCHEMA = 1


@dataclass(frozen=True)
class SetInfo:
    """One side of a comparison.

    Attributes:
        name: what to call the set.
        source: the folder, zip or npz of its samples; None when the embeddings came without one.
        n: how many samples were compared.
        digest: SHA-256 of the embeddings (of the parts, for a sketch of several).
        from_sketch: True when only a sketch was at hand, so that the intervals are conservative and the samples
            shown come from the sketch's own sample.
        unreadable: how many samples could not be read.
        unreadable_examples: the first few of them, (id, reason).
        clip: which frames of a video are a sample; None of images.
    """

    name: str
    source: str | None
    n: int
    digest: str
    from_sketch: bool
    unreadable: int = 0
    unreadable_examples: tuple[tuple[str, str], ...] = ()
    clip: Clip | None = None

    @property
    def place(self) -> str:
        """Where its samples are, as a page may say: of what lies outside the working folder its name alone."""
        if self.source is None:
            return "a sketch" if self.from_sketch else "embeddings alone"
        return Path(self.source).name if Path(self.source).is_absolute() else self.source

    def check_samples(self, given: Samples | None) -> None:
        """Raise FincEvalError unless the samples that a caller names, if any, can be opened.

        What is named must be there; what a result remembers may be gone.
        """
        if given is not None:
            open_source(given, clip=self.clip)


@dataclass(frozen=True)
class Copies:
    """Samples of the generated set whose decoded pixels equal those of a reference sample.

    Attributes:
        count: how many generated samples are such copies.
        examples: the first few, (generated id, reference id).
    """

    count: int
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Settings:
    """What was asked for.

    Attributes:
        rho: ρ; a kind counts when one set has more than ρ times the mass of the other.
        kernel: "gaussian" or "cosine".
        sigma: σ, the bandwidth of the Gaussian kernel; None for the cosine kernel.
        sigma_rule: where σ came from.
        features: r, the number of random frequencies; of the cosine kernel, the entries of an embedding.
        modes: how many modes of each role at most.
        seed: of the frequencies.
        rotation: "varimax", or None for what the method finds as it is.
        method: what finds the modes.
    """

    rho: float
    kernel: str
    sigma: float | None
    sigma_rule: str
    features: int
    modes: int
    seed: int
    rotation: Literal["varimax"] | None
    method: Method = FINC

    @property
    def by_eigenvalue(self) -> bool:
        """Whether modes are eigenvectors as they are, and come in the order of their eigenvalues."""
        return self.rotation is None and self.method.name in ("finc", "ken")


@dataclass(frozen=True, eq=False)
class Comparison(Document):
    """The modes on which a generated and a reference set differ.

    Attributes:
        modes: over-represented in the generated set, by descending excess (eigenvectors as they are, by eigenvalue).
        under_represented: the reversed role: what the generated set has less of.
        gen, ref: the two sets.
        settings: what was asked for.
        signature: pins everything that changes the numbers save the generated set itself.
        space: the extractor, as name@digest.
        tested: how many directions were tested, over both roles; the family of intervals and p-values.
        spectrum: the leading eigenvalues of C_X − ρC_Y, and of the reversed role C_Y − ρC_X; none where the method
            has none.
        kernel_error: of the feature map, on a subsample of both sets; None when sketches keep no samples.
        copies: exact copies across the sets; None when the sets hold no decoded pixels to compare.
        warnings: what a reader should know before trusting the numbers.
        feature_map: φ.
        version: of finc-eval.
    """

    modes: tuple[Mode, ...]
    under_represented: tuple[Mode, ...]
    gen: SetInfo
    ref: SetInfo
    settings: Settings
    signature: Signature
    space: str
    tested: int
    spectrum: tuple[tuple[float, ...], tuple[float, ...]]
    kernel_error: KernelError | None
    copies: Copies | None
    warnings: tuple[str, ...]
    feature_map: FeatureMap
    version: str

    @property
    def all_modes(self) -> tuple[Mode, ...]:
        """Over- and then under-represented modes."""
        return self.modes + self.under_represented

    def significant(self, alpha: float = 0.05) -> tuple[Mode, ...]:
        """The modes whose adjusted p-value is at most α; among all tested, a false one with probability ≤ α."""
        if not 0 < alpha < 1:
            raise FincEvalError(f"alpha must lie between 0 and 1, got {alpha}")
        return tuple(mode for mode in self.all_modes if mode.p_value <= alpha)

    def score(self, embeddings: object, modes: Sequence[Mode] | None = None) -> NDArray[np.float32]:
        """Score any samples on the modes: s = φ(x)·v is high for samples that are of the mode.

        Args:
            embeddings: an array or tensor of shape (n, d), an `EmbeddingCache` or the path of one, of the same
                extractor.
            modes: which modes; `self.modes` when left out.

        Returns:
            Shape (n, k), between −1 and 1, one column a mode; s² is what a mode's mass is the mean of.

        Raises:
            FincEvalError: when the embeddings are of another extractor or dimension.
        """
        rows = as_embeddings(embeddings)
        chosen = self.modes if modes is None else modes
        scores = np.empty((rows.n, len(chosen)), np.float32)
        for batch, batch_scores in self.score_batches(rows, chosen):
            scores[batch.start : batch.start + len(batch.ids)] = batch_scores
        return scores

    def score_batches(self, embeddings: object, modes: Sequence[Mode]) -> Iterator[tuple[Batch, NDArray[np.float32]]]:
        """`score`, batch by batch: each with its scores, shape (b, k), in the order of the set."""
        rows = as_embeddings(embeddings)
        check_same_space(rows.name, rows.space, "the comparison", self.space)
        vectors = np.array([mode.direction for mode in modes], np.float32).reshape(len(modes), self.feature_map.size)
        directions = torch.from_numpy(vectors.T).to(self.feature_map.device)
        for batch in rows.batches():
            yield batch, (self.feature_map(batch.rows) @ directions).cpu().numpy()

    def to_dict(self) -> dict[str, Any]:
        """Everything but the directions and the feature map, as plain JSON types; `schema` numbers the layout."""
        return {
            "program": "finc-eval",
            "version": self.version,
            "schema": SCHEMA,
            "signature": str(self.signature),
            "space": self.space,
            "settings": asdict(self.settings),
            "gen": asdict(self.gen),
            "ref": asdict(self.ref),
            "kernel_error": None if self.kernel_error is None else _plain(self.kernel_error),
            "copies": None if self.copies is None else _plain(self.copies),
            "warnings": list(self.warnings),
            "tested": self.tested,
            "spectrum": {"over": list(self.spectrum[0]), "under": list(self.spectrum[1])},
            "modes": [_mode_to_dict(mode) for mode in self.modes],
            "under_represented": [_mode_to_dict(mode) for mode in self.under_represented],
        }

    def to_html(
        self, path: str | Path, *, gen_samples: Samples | None = None, ref_samples: Samples | None = None
    ) -> Path:
        """Write the report: one self-contained HTML file with thumbnails of both sets.

        Args:
            path: the file to write.
            gen_samples: where the generated samples are now, if not where they were embedded from: a folder, zip,
                npz or array of images.
            ref_samples: the same for the reference samples.

        Raises:
            FincEvalError: when samples that were passed cannot be opened, or the file cannot be written.
        """
        # The page is drawn by the layer above; results know of it only when they are asked for it.
        from finc_eval.report.comparison import render_report

        self.gen.check_samples(gen_samples)
        self.ref.check_samples(ref_samples)
        return write_text(path, render_report(self, gen_samples=gen_samples, ref_samples=ref_samples))

    def save(self, path: str | Path) -> None:
        """Write an HDF5 file, from which `load` restores the comparison, and beside it its JSON twin."""
        twin = self.twin(path)
        with new_hdf5(path, "comparison", SCHEMA) as file:
            file.create_dataset("result", data=json.dumps(self.to_dict()), dtype=h5py.string_dtype())
            directions = [mode.direction for mode in self.all_modes]
            file["directions"] = np.array(directions, np.float32).reshape(len(directions), self.feature_map.size)
            write_feature_map(file, self.feature_map)
        self.to_json(twin)

    @staticmethod
    def twin(path: str | Path) -> Path:
        """Where the JSON twin of a comparison saved at `path` lies.

        Raises:
            FincEvalError: when a comparison cannot be saved at `path`, because it would overwrite its twin, or a
                file of another kind.
        """
        twin = Path(path).with_suffix(".json")
        if twin == Path(path):
            raise FincEvalError(f"{path} is the name of the JSON twin: save the comparison as {twin.stem}.h5")
        check_target(path, "comparison")
        return twin

    @classmethod
    def load(cls, path: str | Path) -> Comparison:
        """Read a comparison that `save` wrote.

        Raises:
            FincEvalError: when the file is missing, damaged, or no comparison.
        """
        with existing_hdf5(path, "comparison", SCHEMA) as file:
            data = json.loads(file["result"].asstr()[()])
            directions = file["directions"][:]
            feature_map = read_feature_map(file)
        records = data["modes"] + data["under_represented"]
        modes = tuple(_mode_from_dict(r, v) for r, v in zip(records, directions, strict=True))
        over = len(data["modes"])
        return cls(
            modes=modes[:over],
            under_represented=modes[over:],
            gen=_set_from_dict(data["gen"]),
            ref=_set_from_dict(data["ref"]),
            settings=Settings(**{**data["settings"], "method": Method(**data["settings"].get("method", {}))}),
            signature=Signature.parse(data["signature"]),
            space=data["space"],
            tested=data["tested"],
            spectrum=(tuple(data["spectrum"]["over"]), tuple(data["spectrum"]["under"])),
            kernel_error=None if data["kernel_error"] is None else KernelError(**data["kernel_error"]),
            copies=None
            if data["copies"] is None
            else Copies(data["copies"]["count"], tuple((a, b) for a, b in data["copies"]["examples"])),
            warnings=tuple(data["warnings"]),
            feature_map=feature_map,
            version=data["version"],
        )

    def __repr__(self) -> str:
        found = len(self.significant())
        return (
            f"Comparison({self.gen.n} generated, {self.ref.n} reference, {self.space}: {len(self.modes)} over- and "
            f"{len(self.under_represented)} under-represented modes, {found} of them with p ≤ 0.05)"
        )

    def _repr_html_(self) -> str:
        from finc_eval.report.comparison import render_fragment

        return render_fragment(self)


def _plain(record: Any) -> dict[str, Any]:
    """A flat dataclass as JSON types."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: [list(v) for v in value] if isinstance(value, tuple) else value for name, value in values.items()}


def _set_from_dict(data: dict[str, Any]) -> SetInfo:
    examples = tuple((i, reason) for i, reason in data["unreadable_examples"])
    clip = data.get("clip")
    return SetInfo(**{**data, "unreadable_examples": examples, "clip": clip and Clip(**clip)})


def _mode_to_dict(mode: Mode) -> dict[str, Any]:
    return {
        "id": mode.id,
        "role": mode.role,
        "excess": mode.excess,
        "interval": list(mode.interval),
        "p_value": mode.p_value,
        "standard_error": mode.standard_error,
        "mass_gen": mode.mass_gen,
        "mass_ref": mode.mass_ref,
        "excess_frequency": mode.excess_frequency,
        "ratio": mode.ratio if mode.mass_ref > 0 else None,
        "stability": mode.stability,
        "fitted_excess": mode.fitted_excess,
        "tails": [
            {
                "share": tail.share,
                "gen": {
                    "index": tail.gen.tolist(),
                    "id": list(tail.gen_ids),
                    "score": tail.gen_scores.tolist(),
                },
                "ref": {
                    "index": tail.ref.tolist(),
                    "id": list(tail.ref_ids),
                    "score": tail.ref_scores.tolist(),
                },
            }
            for tail in mode.tails
        ],
    }


def _mode_from_dict(data: dict[str, Any], direction: NDArray[np.float32]) -> Mode:
    positive, negative = (
        Tail(
            share=tail["share"],
            gen=np.array(tail["gen"]["index"], np.int64),
            ref=np.array(tail["ref"]["index"], np.int64),
            gen_ids=tuple(tail["gen"]["id"]),
            ref_ids=tuple(tail["ref"]["id"]),
            gen_scores=np.array(tail["gen"]["score"], np.float32),
            ref_scores=np.array(tail["ref"]["score"], np.float32),
        )
        for tail in data["tails"]
    )
    return Mode(
        id=data["id"],
        role=data["role"],
        excess=data["excess"],
        mass_gen=data["mass_gen"],
        mass_ref=data["mass_ref"],
        excess_frequency=data["excess_frequency"],
        interval=(data["interval"][0], data["interval"][1]),
        p_value=data["p_value"],
        standard_error=data["standard_error"],
        stability=data["stability"],
        fitted_excess=data["fitted_excess"],
        direction=direction,
        tails=(positive, negative),
    )
