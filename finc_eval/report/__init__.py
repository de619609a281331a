"""Pages, notebook views and terminal tables of results.

One module per type of result, each with an `outline`: its tables and sentences. Markdown, the row of an index, the
terminal, the view of a notebook and a page follow from the outline. A module has a `page` of its own for samples, cards
or further sections, and a `show` where a terminal says more.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from finc_eval.core.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from finc_eval.core.serialize import Document
    from finc_eval.report.exports.outline import Outline

RESULTS: dict[str, tuple[str, str]] = {
    "comparison": ("comparison", "finc_eval.comparison.result:Comparison"),
    "kinds": ("kinds", "finc_eval.partitions.kinds:Kinds"),
    "leaderboard": ("leaderboard", "finc_eval.leaderboards.result:Leaderboard"),
    "methods": ("methods", "finc_eval.comparison.methods:MethodComparison"),
    "spaces": ("spaces", "finc_eval.comparison.spaces:Spaces"),
    "sweep": ("sweep", "finc_eval.comparison.sweep:Sweep"),
    "changes": ("changes", "finc_eval.comparison.changes:Changes"),
    "scores": ("scores", "finc_eval.measures.score:Scores"),
    "evaluation": ("evaluation", "finc_eval.evaluations:Evaluation"),
    "verdict": ("gate", "finc_eval.gates.verdict:Verdict"),
    "audit": ("audit", "finc_eval.memorization.result:Audit"),
    "membership-score": ("membership", "finc_eval.kahm.membership:MembershipScore"),
    "private-score": ("private", "finc_eval.privacy.reference.result:PrivateScore"),
    "synthesis": ("synthesis", "finc_eval.privacy.synthesis.result:Synthesis"),
    "private-comparison": ("private", "finc_eval.privacy.reference.result:PrivateComparison"),
}
"""Every type of result: the module of this folder that draws it, and its class."""


def page(result: Document, samples: Mapping[str, Any]) -> str:
    """Return the page of a result: one HTML file that loads nothing.

    Samples that cannot be read are shown by their ids, and the page says why. `samples` are where the samples of a set
    are now, by label.
    """
    from finc_eval.gallery.pictured import Pictured
    from finc_eval.report.pages import render

    module = _module(result)
    if hasattr(module, "page"):
        return str(module.page(result, samples))
    if isinstance(result, Pictured):
        return render(result, module.outline(result), result.gallery_of(samples))
    if samples:
        raise UsageError(f'pages of the type "{result.type_name}" show no samples: leave samples out')
    return render(result, module.outline(result))


def outline(result: Document) -> Outline:
    """Return what a result says in all of its outputs."""
    return cast("Outline", _module(result).outline(result))


def markdown(result: Document) -> str:
    """Return a result as Markdown."""
    from finc_eval.report.exports.markdown import markdown
    from finc_eval.report.exports.outline import how_made

    said = outline(result)
    return markdown(said, how_made(result.provenance, said.call), result.mark)


def latex(result: Document) -> str:
    """Return the tables of a result as LaTeX."""
    from finc_eval.report.exports.paper import latex

    return latex(outline(result))


def figure(result: Document, alpha: float) -> Figure:
    """Return the numbers of a result as a figure of matplotlib."""
    from finc_eval.report.exports.paper import figure_of

    return figure_of(result._cell_rows(), alpha)


def fragment(result: Document, samples: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return the headline and the tables of a result as a notebook shows them."""
    from finc_eval.gallery.pictured import Pictured
    from finc_eval.report.pages import NO_GALLERY, notebook_view

    module = _module(result)
    said = module.notebook(result) if hasattr(module, "notebook") else module.outline(result)
    if hasattr(module, "gallery"):
        return notebook_view(said, module.gallery(result, samples))
    return notebook_view(said, result.gallery_of(samples) if isinstance(result, Pictured) else NO_GALLERY)


def show(result: Document) -> None:
    """Print the tables of a result, and what was found, on standard output."""
    from finc_eval.report.terminal import print_outline

    module = _module(result)
    module.show(result) if hasattr(module, "show") else print_outline(module.outline(result))


def result_class(type_name: str) -> type[Document]:
    """Return the class of a type of result."""
    return cast("type[Document]", resolve_name(RESULTS[type_name][1]))


def _module(result: Document) -> Any:
    return import_module(f"finc_eval.report.{RESULTS[result.type_name][0]}")
