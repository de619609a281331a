"""`finc-eval compare`: the modes on which two sets differ."""

from __future__ import annotations

import finc_eval as fe
from finc_eval.cli.options import Device, Extractor, Gen, Json, Ref, Strict, running, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given, embed_all
from finc_eval.comparison.settings import Settings


@takes(Settings, "settings")
def compare(
    gen: Gen,
    ref: Ref,
    settings: Settings,
    out: Out = None,
    force: Force = False,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Find the modes on which two sets of samples differ, and write a report.

    A mode is a kind of samples that one set has more of than the other. Over-represented modes are more frequent in
    --gen, under-represented modes in --ref.
    """
    sources = {"gen": gen, "ref": ref}
    check_given(sources.values(), extractor)
    output = output_folder("compare", "comparison", sources, out, force)
    with running(device) as run:
        sets = embed_all(sources, extractor, strict, run)
        result = fe.compare(sets["gen"], sets["ref"], settings, run=run)
    emit(result, output, as_json)
