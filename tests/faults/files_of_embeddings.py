"""Files of embeddings, sketches and statistics: how each is made, opened and used."""

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import torch
from faults.content import IDS, N, numbers, pictures, png, sets

import finc_eval as fe
from finc_eval.embeddings import folder as cache_folder
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.recipe import Identity, recipe_of
from finc_eval.embeddings.writer import CacheWriter
from finc_eval.extractors.catalog import load_card
from finc_eval.measures.gaussians.gaussian import GaussianStatistics
from finc_eval.measures.gaussians.reference_statistics import read_statistics, write_statistics
from finc_eval.samples.encoding import Encoding
from finc_eval.samples.source import Manifest


def make_cache(path):
    names = [f"{row}.png" for row in range(8)]
    fe.extract(
        pictures(),
        "pixels",
        path,
        metadata={"id": [str(row) for row in range(8)], "label": list("ababcabc"), "x y": names},
    ).close()


def use_cache(path):
    cache_folder.entry_of(path)
    problem = cache_folder.verify(path)
    with fe.EmbeddingCache(path) as cache:
        rows, some = cache[:], cache[[3, 1]]
        columns = {name: cache.column(name) for name in cache.columns}
        found = as_embeddings(cache)
        batches = sum(len(batch.rows) for batch in found.batches(3))
        content = cache.content.tolist()
        assert batches == len(rows) == cache.n and len(some) == 2
        assert problem is None, problem  # all that verify reads was read here, too
        return cache.key, rows.tobytes(), cache.ids, columns, content, cache.failures, repr(cache), cache.clip


@cache
def two_shards():
    """Embeddings of both shards of a set, in a folder that is gone when the process ends."""
    folder = tempfile.TemporaryDirectory()
    images = Path(folder.name) / "set.npz"
    np.savez(images, pictures())
    paths = [fe.extract(images, "pixels", images.with_suffix(".h5"), shard=f"{number}/2").path for number in (1, 2)]
    return folder, paths


def make_shard(path):
    shutil.copy(two_shards()[1][0], path)


def use_shard(path):
    """Merge: the other shard is as it was."""
    out = path.with_name("merged.h5")
    try:
        with fe.merge([path, two_shards()[1][1]], out) as cache:
            return cache.key, cache[:].tobytes(), cache.ids, cache.content.tolist(), cache.failures, repr(cache.profile)
    finally:
        out.unlink(missing_ok=True)


CARD = recipe_of(load_card("pixels"), "float32")
IDENTITY = Identity("/data/gen", Manifest("folder", N, "m" * 64, {}), "pixels", CARD)


def fill(writer, stop):
    rows = numbers()
    for start in range(writer.done, stop, 10):
        here = slice(start, start + 10)
        reasons = ["broken" if row == 7 else None for row in range(here.start, here.stop)]
        writer.write(
            rows[here],
            np.arange(here.start, here.stop, dtype=np.uint64),
            reasons,
            [Encoding("PNG", "RGB", 9, 9, False)] * 10,
        )


def make_part(path):
    with CacheWriter(path.with_suffix(""), IDENTITY.key, IDS, {"embeddings": 6}, 10) as writer:
        fill(writer, 40)


def use_part(path):
    """Resume: whatever the damage, the whole cache is right."""
    whole = path.with_suffix("")
    cache_folder.entry_of(whole)
    with CacheWriter(whole, IDENTITY.key, IDS, {"embeddings": 6}, 10) as writer:
        fill(writer, N)
        writer.finish(IDENTITY)
    with fe.EmbeddingCache(whole) as cache:
        return cache[:].tobytes(), cache.ids, cache.content.tolist(), cache.failures


def use_array_file(path):
    found = as_embeddings(path)
    return sum(batch.rows.shape[0] for batch in found.batches(16)), found.ids_between(0, 3), found.columns


def make_safetensors(path):
    from safetensors.torch import save_file

    save_file({"embeddings": torch.from_numpy(numbers()), "labels": torch.arange(N)}, path)


def make_parquet(path):
    import pandas as pd

    frame = pd.DataFrame(numbers(), columns=[f"e{entry}" for entry in range(6)])
    frame.insert(0, "id", IDS)
    frame.to_parquet(path)


def make_hdf5(path):
    import h5py

    options = {} if path.suffix == ".h5" else {"chunks": (17, 4), "compression": "gzip", "shuffle": True}
    with h5py.File(path, "w") as file:
        file.create_dataset("vectors", data=numbers(), **options)
        file.create_dataset("ids", data=np.array([one.encode() for one in IDS]))
        file.create_dataset("deep/label", data=np.arange(N))


def make_images_in_parquet(path):
    import pandas as pd

    pd.DataFrame({"image": [png(pixels) for pixels in pictures()], "label": range(8)}).to_parquet(path)


def make_table(path):
    rows = [{"file_name": name, "label": str(row % 3), "n": row} for row, name in enumerate(IDS)]
    if path.suffix == ".csv":
        path.write_text(
            "file_name,label,n\n" + "".join(f"{row['file_name']},{row['label']},{row['n']}\n" for row in rows)
        )
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        import pandas as pd

        pd.DataFrame(rows).to_parquet(path)


def make_sketch(path):
    fe.Sketch.reference(fe.EmbeddingSet(sets()[1], ids=IDS, name="é"), features=15, sigma=2.0).save(path)


def use_sketch(path):
    sketch = fe.Sketch.load(path)
    if sketch.n > 20 and sketch.dim == 6:
        other = fe.Sketch.of(sets()[0], sketch)
        fe.compare(other, sketch, method=fe.Finc(clusters=False), modes=2).to_json()
    return (
        sketch.n,
        sketch.covariance.tolist(),
        sketch.sample.ids,
        sketch.sample.rows.tolist(),
        sketch.groups,
        sketch.squared_sizes,
    )


def write_gaussian(path):
    rows = torch.from_numpy(numbers()).double()
    write_statistics(path, GaussianStatistics(N, rows.mean(0), rows.T.cov(), "x", "pixels@1234"))


def use_statistics(path):
    return repr(read_statistics(path).covariance)


def use_foreign_statistics(path):
    found = read_statistics(path)
    return fe.metrics(sets()[0], path, ["fd"])["fd"].value if found.dim == 6 else None
