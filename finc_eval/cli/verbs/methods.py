"""`finc-eval methods`: FINC and the baselines of its paper on the same two sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import finc_eval as fe
from finc_eval.cli.options import Device, Extractor, Gen, Json, Ref, Strict, running, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given, embed_all
from finc_eval.comparison.settings import Clusters, Finc, Fld, Ken, Method, Rarity, Settings, methods_of
from finc_eval.core.record import about


@dataclass(frozen=True)
class Columns:
    """Methods to compare."""

    methods: Annotated[tuple[Method, ...], about("methods, separated by commas, in the order of the columns")] = (
        Finc(clusters=False),
        Clusters(),
        Ken(),
        Rarity(),
        Fld(),
    )

    def __post_init__(self) -> None:
        methods_of(self.methods)


@takes(Settings, "settings", method=None)
@takes(Columns, "columns")
def methods(
    gen: Gen,
    ref: Ref,
    columns: Columns,
    settings: Settings,
    out: Out = None,
    force: Force = False,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Compare two sets by FINC and by the baselines of its paper, side by side.

    The methods differ only in how they find the directions that they test. Both sets must be samples or embeddings:
    a sketch is enough for finc alone.
    """
    sources = {"gen": gen, "ref": ref}
    check_given(sources.values(), extractor)
    output = output_folder("methods", "methods", sources, out, force)
    with running(device) as run:
        sets = embed_all(sources, extractor, strict, run)
        result = fe.compare_methods(sets["gen"], sets["ref"], columns.methods, settings, run=run)
    emit(result, output, as_json)
