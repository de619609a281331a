"""The example board: seven real generators of digits against the MNIST test set, by pixels.

Needs the test assets (FINC_EVAL_ASSETS). Writes the stored board, the page and its JSON to reports/leaderboard/, which
is committed.

    python benchmarks/generators_board.py
"""

import shutil
from os import chdir
from pathlib import Path

import numpy as np
from _real import asset
from generators import MODELS, mnist_test

import finc_eval as fe

SIZES = {"pixels": 3000}
"""Extractors, and the number of digits of each set; of several, the boards stand side by side."""
REPORTS = Path(__file__).resolve().parents[1] / "reports" / "leaderboard"


def main():
    folder = asset("mnist_generated")
    if folder is None:
        return
    chdir(folder)  # the board tells no place outside the working folder
    sources = {name: f"{name}.npz" for name in MODELS}
    shutil.rmtree(REPORTS, ignore_errors=True)
    boards = {}
    for extractor, n in SIZES.items():
        ref = fe.extract(mnist_test(), extractor, n=n)
        sets = {name: fe.extract(source, extractor, n=n) for name, source in sources.items()}
        stored = fe.Board(REPORTS / extractor)
        stored.add(sets, ref, metrics=("kid",), rank_by="kid")
        boards[extractor] = stored.leaderboard()
        print(boards[extractor], flush=True)
    (first, own), *others = boards.items()
    both = own.beside(dict(others), first) if others else own
    both.to_json(REPORTS / "leaderboard.json")
    both.to_html(REPORTS / "leaderboard.html", samples={**sources, "ref": np.repeat(mnist_test()[..., None], 3, -1)})


if __name__ == "__main__":
    main()
