"""Every kind of file that finc-eval opens: how a valid one is made, damaged, opened and used."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from faults.content import IDS, N, numbers, pictures
from faults.damage import of_bytes, of_npy, of_own, of_png, of_tar, of_text, of_zip
from faults.files_of_embeddings import (
    make_cache,
    make_hdf5,
    make_images_in_parquet,
    make_parquet,
    make_part,
    make_safetensors,
    make_shard,
    make_sketch,
    make_table,
    use_array_file,
    use_cache,
    use_foreign_statistics,
    use_part,
    use_shard,
    use_sketch,
    use_statistics,
    write_gaussian,
)
from faults.files_of_privacy import (
    make_answer,
    make_description,
    make_ledger,
    make_models,
    make_people,
    make_private,
    use_answer,
    use_description,
    use_ledger,
    use_models,
    use_people,
    use_private,
    use_private_images,
)
from faults.files_of_results import (
    made_part,
    make_audit,
    make_bundle,
    make_comparison,
    make_evaluation,
    make_floor,
    make_index,
    make_kinds,
    make_leaderboard,
    make_methods,
    make_monitor,
    make_policy,
    make_result,
    make_scores,
    make_verdict,
    use_bundle,
    use_comparison,
    use_entry,
    use_floor,
    use_index,
    use_kinds,
    use_monitor,
    use_pictured,
    use_policy,
    use_reference,
    use_result,
)
from faults.files_of_samples import (
    CLIP,
    make_animation,
    make_card,
    make_clips,
    make_image,
    make_images,
    make_judged,
    make_settings,
    make_tar,
    make_video,
    make_votes,
    make_zip,
    make_zip_of_stylegan,
    use_judged,
    use_samples,
    use_settings,
    use_tar,
    use_video,
    use_votes,
)

from finc_eval.embeddings.columns import metadata_table
from finc_eval.extractors.catalog import load_card


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        suffix: end of its name.
        make: writes a valid file.
        use: opens a file by the public door and uses it; what it returns must be the same for the same content.
        damage: damages the bytes of a file.
        sealed: whether a file that was damaged, and not forged, may never be taken for another content.
    """

    suffix: str
    make: Callable[[Path], object]
    use: Callable[[Path], object]
    damage: Callable[[bytes, np.random.Generator], bytes] = of_bytes
    sealed: bool = False


KINDS = {
    "cache": Kind(".h5", make_cache, use_cache, of_own, True),
    "shard": Kind(".h5", make_shard, use_shard, of_own, True),
    "part": Kind(".h5.part", make_part, use_part, of_bytes, True),
    "sketch": Kind(".h5", make_sketch, use_sketch, of_own, True),
    "comparison": Kind(".h5", make_comparison, use_comparison, of_own, True),
    "methods": Kind(".h5", make_methods, use_pictured, of_own, True),
    "kinds": Kind(".h5", make_kinds, use_kinds, of_own, True),
    "monitor": Kind(".h5", make_monitor, use_monitor, of_own, True),
    "board entry": Kind(".json", lambda path: made_part(path, "entries/gen.json"), use_entry, of_text, True),
    "board reference": Kind(".h5", lambda path: made_part(path, "reference.h5"), use_reference, of_own, True),
    "private sketch": Kind(".h5", make_private, use_private, of_own, True),
    "models": Kind(".h5", make_models, use_models, of_own, True),
    "answer": Kind(".distances.h5", make_answer, use_answer, of_own, True),
    "result JSON": Kind(".json", make_result, use_result, of_text, True),
    "scores JSON": Kind(".json", make_scores, use_result, of_text, True),
    "audit JSON": Kind(".json", make_audit, use_result, of_text, True),
    "leaderboard JSON": Kind(".json", make_leaderboard, use_result, of_text, True),
    "evaluation JSON": Kind(".json", make_evaluation, use_result, of_text, True),
    "verdict JSON": Kind(".json", make_verdict, use_result, of_text, True),
    "board index": Kind(".json", make_index, use_index, of_text, True),
    "baseline": Kind(".json", make_bundle, use_bundle, of_text, True),
    "floor of golden pictures": Kind(".jsonl", make_floor, use_floor, of_text),
    "policy": Kind(".toml", make_policy, use_policy, of_text),
    "ledger": Kind(".jsonl", make_ledger, use_ledger, of_text, True),
    "table TOML": Kind(".toml", make_description, use_description, of_text),
    "table JSON": Kind(".json", make_description, use_description, of_text),
    "settings": Kind(".toml", make_settings, use_settings, of_text),
    "card": Kind(".toml", make_card, load_card, of_text),
    "votes CSV": Kind(".csv", make_votes, use_votes, of_text),
    "scores JSONL": Kind(".jsonl", make_judged, use_judged, of_text),
    "VBench JSON": Kind(".json", make_judged, use_judged, of_text),
    "people CSV": Kind(".csv", make_people, use_people, of_text),
    "people npz": Kind(".npz", make_people, use_people, of_zip),
    "private npz": Kind(".npz", make_images, use_private_images, of_zip),
    "images npz": Kind(".npz", make_images, use_samples, of_zip),
    "clips npz": Kind(".npz", make_clips, lambda path: use_samples(path, CLIP), of_zip),
    "images zip": Kind(".zip", make_zip, use_samples, of_zip),
    "StyleGAN zip": Kind(".zip", make_zip_of_stylegan, use_samples, of_zip),
    "images tar": Kind(".tar", make_tar, use_tar, of_tar),
    "PNG": Kind(".png", make_image, lambda path: use_samples(path.parent)),
    "PNG, right checksums": Kind(".png", make_image, lambda path: use_samples(path.parent), of_png),
    "GIF": Kind(".gif", make_image, lambda path: use_samples(path.parent)),
    "BMP": Kind(".bmp", make_image, lambda path: use_samples(path.parent)),
    "TIFF": Kind(".tiff", make_image, lambda path: use_samples(path.parent)),
    "JPEG": Kind(".jpg", make_image, lambda path: use_samples(path.parent)),
    "WebP": Kind(".webp", make_image, lambda path: use_samples(path.parent)),
    "MP4": Kind(".mp4", make_video, use_video),
    "animated WebP": Kind(".webp", make_animation, use_video),
    "APNG": Kind(".png", make_animation, use_video),
    "AVI": Kind(".avi", make_video, use_video),
    "npy": Kind(".npy", lambda path: np.save(path, numbers()), use_array_file, of_npy),
    "embeddings npz": Kind(
        ".npz",
        lambda path: np.savez(path, embeddings=numbers(), ids=np.array(IDS), label=np.arange(N)),
        use_array_file,
        of_zip,
    ),
    "pt": Kind(
        ".pt", lambda path: torch.save({"embeddings": torch.from_numpy(numbers())}, path), use_array_file, of_zip
    ),
    "safetensors": Kind(".safetensors", make_safetensors, use_array_file, of_text),
    "parquet": Kind(".parquet", make_parquet, use_array_file),
    "HDF5": Kind(".h5", make_hdf5, use_array_file),
    "HDF5 in chunks": Kind(".hdf5", make_hdf5, use_array_file),
    "statistics": Kind(".npz", write_gaussian, use_statistics, of_zip, True),
    "FID npz": Kind(
        ".npz", lambda path: np.savez(path, mu=np.zeros(6), sigma=np.eye(6)), use_foreign_statistics, of_zip
    ),
    "images npy": Kind(".npy", lambda path: np.save(path, pictures()), use_samples, of_npy),
    "images pt": Kind(".pt", lambda path: torch.save(torch.from_numpy(pictures()), path), use_samples, of_zip),
    "images parquet": Kind(".parquet", make_images_in_parquet, use_samples),
    "metadata CSV": Kind(".csv", make_table, lambda path: metadata_table(path, IDS), of_text),
    "metadata JSONL": Kind(".jsonl", make_table, lambda path: metadata_table(path, IDS), of_text),
    "metadata parquet": Kind(".parquet", make_table, lambda path: metadata_table(path, IDS)),
}


def quietly(use, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return use(path)
