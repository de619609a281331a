"""Extraction with the settings of the tests, and a progress that remembers and raises."""

from importlib import import_module

import pytest

from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import silent
from finc_eval.core.run import Run

extraction = import_module("finc_eval.embeddings.extract")


def extract(
    source, extractor="pixels", out=None, *, progress=silent, device=None, batch_size=None, workers=2, **options
):
    run = Run(device, batch_size, workers, progress)
    return extraction.extract(source, extractor, out, run=run, **options)


N, BATCH, ROUNDING = 40, 8, 2e-7


def message(call, *arguments, **options):
    with pytest.raises(FincEvalError) as caught:
        call(*arguments, **options)
    return str(caught.value)


class Steps(list):
    """A progress that remembers what it was told, and may raise at one call of a stage."""

    def __init__(self, stage="", call=0, error=None):
        super().__init__()
        self.stage, self.call, self.error = stage, call, error

    def __call__(self, stage, done, total):
        self.append((stage, done))
        if self.error and len(self.of(self.stage)) == self.call:
            raise self.error

    def of(self, stage):
        return [done for name, done in self if name.startswith(stage)]


def leftovers(folder):
    return sorted(file.name for file in folder.iterdir() if not file.name.endswith(".h5"))
