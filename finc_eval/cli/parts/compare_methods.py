"""`finc-eval compare methods`: FINC and the baselines of its paper on the same two sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import finc_eval as fe
from finc_eval.cli.options import Gen, Json, Pictures, Ref, Work, embeds, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given
from finc_eval.comparison.settings import Finc, Fld, Ken, Method, Rarity, Settings, methods_of
from finc_eval.core.record import Configured, about
from finc_eval.extractors.settings import Extraction
from finc_eval.gallery.counts import SHOWN_SAMPLES, check_shown


@dataclass(frozen=True)
class Columns(Configured):
    """Methods to compare."""

    table: ClassVar[str] = "methods"

    methods: Annotated[tuple[Method, ...], about("methods, separated by commas, in the order of the columns")] = (
        Finc(clusters=False),
        Ken(),
        Rarity(),
        Fld(),
    )

    def __post_init__(self) -> None:
        methods_of(self.methods)


@takes(Settings, "settings", method=None)
@takes(Columns, "columns")
@embeds
def methods(
    gen: Gen,
    ref: Ref,
    columns: Columns,
    settings: Settings,
    extraction: Extraction,
    work: Work,
    out: Out = None,
    force: Force = False,
    pictures: Pictures = SHOWN_SAMPLES,
    as_json: Json = False,
) -> None:
    """Compare two sets by FINC and by the baselines of its paper, side by side.

    The methods differ only in how they find the directions that they test: the verb kinds finds kinds. Both sets must
    be samples or embeddings: a sketch is enough for finc alone.
    """
    sources = {"gen": gen, "ref": ref}
    check_given(sources.values(), extraction.extractor)
    check_shown(pictures)
    output = output_folder("methods", "methods", sources, out, force)
    with work.running() as run:
        result = fe.compare_methods(gen, ref, columns.methods, settings, extractor=extraction, run=run)
    emit(result.showing(pictures), output, as_json)
