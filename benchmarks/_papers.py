"""Figures that the papers print, transcribed once in `papers/`: the "paper" columns of all records read them."""

import tomllib
from pathlib import Path


def published(paper):
    """Return the transcribed tables of "finc", "dp_hp" or "kahm"; of "tables", every table of each of them."""
    return tomllib.loads((Path(__file__).parent / "papers" / f"{paper}.toml").read_text(encoding="utf-8"))
