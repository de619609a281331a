"""Recipes of docs/scale_engines.md, the folder of Parquet files that they read, and the sketch they should make."""

import io
import os
import re
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import finc_eval as fe

ROOT = Path(__file__).parents[1]
SMALLER = {'"dinov2-vits14"': '"pixels"', 'reference="real.h5"': 'reference="real.h5", features=20, sample=40'}
N = 90
IMAGES = np.random.default_rng(0).integers(0, 256, (N, 8, 8, 3), dtype=np.uint8)
IDS = [f"{row}.png" for row in range(N)]


def make_files(folder):
    """Write the images as three Parquet files in the folder "images", and embeddings of the reference as "real.h5"."""
    fe.extract(IMAGES[::2], "pixels", out=folder / "real.h5").close()
    (folder / "images").mkdir()
    for number in range(3):
        some = range(30 * number, 30 * number + 30)
        table = {"id": [IDS[row] for row in some], "image": [_png(IMAGES[row]) for row in some]}
        pq.write_table(pa.table(table), folder / "images" / f"{number}.parquet", row_group_size=10)


def _png(image):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    return file.getvalue()


def run_recipe(engine, replaced=(), **known):
    """Run the recipe of an engine, or of a section, as it stands on the page, with small features; return its names."""
    text = (ROOT / "docs" / "scale_engines.md").read_text(encoding="utf-8")
    names = {"__name__": "__main__", **known}
    for start in ("## In a data engine", engine if engine.startswith("#") else f"**{engine}**"):
        code = re.search(rf"^{re.escape(start)}.*?```python\n(.*?)```", text, re.S | re.M)[1]
        for larger, smaller in (*SMALLER.items(), *replaced):
            code = code.replace(larger, smaller)
        exec(compile(code, f"scale_engines.md: {engine}", "exec"), names)
    return names


def check_sums(names):
    """Compare the sketch of a recipe with the one that this process makes."""
    sums, sketch = names["sums"], names["sketch"]
    whole = sums.finish(sums.add(sums.zero(), fe.Embedder("pixels")(IMAGES), ids=IDS))
    assert sketch.n == whole.n == N
    assert sketch.sample.ids == whole.sample.ids and sketch.sources == whole.sources
    for mine, other in zip(sketch.folds, whole.folds, strict=True):
        assert mine.n == other.n and (mine.first - other.first).abs().max() < 1e-10
        for (_, block), (_, same) in zip(mine.blocks(), other.blocks(), strict=True):
            assert (block - same).abs().max() < 1e-10


class Killed:
    """An embedder whose process dies once, at its second batch."""

    def __init__(self, folder):
        self.embedder, self.called, self.died = fe.Embedder("pixels"), False, Path(folder, "died")

    def __call__(self, batch):
        if self.called and not self.died.exists():
            self.died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        self.called = True
        return self.embedder(batch)


def one_of_three(rank, folder, port):
    """Run the recipes of torch.distributed and accelerate as process `rank` of three, which meet at a port."""
    import torch.distributed as dist
    from accelerate import PartialState

    os.chdir(folder)
    ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 3, "LOCAL_WORLD_SIZE": 3}
    os.environ |= {name: str(value) for name, value in ranks.items()}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "ACCELERATE_USE_CPU": "1"}
    assert PartialState(cpu=True, backend="gloo").num_processes == 3
    sums = fe.SketchSum(reference="real.h5", features=20, sample=40)
    mine = slice(30 * rank, 30 * rank + 30)
    state = sums.add(sums.zero(), fe.Embedder("pixels")(IMAGES[mine]), ids=IDS[mine])
    names = run_recipe("torch.distributed", state=state)
    if rank == 0:
        check_sums(names)
    check_sums(run_recipe("accelerate", state=state))
    Path(f"checked {rank}").touch()
    dist.destroy_process_group()
