"""The kit of all outputs: pages, notebook views, terminal tables, Markdown, LaTeX and figures. It knows no result.

A result names the module of its page, which lies beside it and has a `PAGE`: what it `says`, an `outline` of tables and
sentences, from which all outputs follow, and what it draws otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from finc_eval.core.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from finc_eval.core.serialize import Document
    from finc_eval.gallery.pictured import Gallery
    from finc_eval.report.exports.outline import Outline


MAX_PAGE = 1_500_000
"""Bytes of a page, beyond which it shows half of the pictures of each kind: mails and comments take it so."""


@dataclass(frozen=True)
class Page:
    """Drawing of a type of result: what it says, and the outputs in which it says more than its outline."""

    says: Callable[[Any], Mapping[str, str]]  # what was found, a sentence or two by key: all outputs begin with these
    outline: Callable[[Any], Outline]  # these sentences, tables, and what qualifies them
    draw: Callable[[Any, Mapping[str, Any]], str] | None = None  # its page, with samples, cards or further sections
    notebook: Callable[[Any], Outline] | None = None  # what a notebook shows instead of the outline
    gallery: Callable[[Any, Mapping[str, Any]], Gallery] | None = None  # its pictures; default: its `gallery_of`
    # writes its page and the folder of all members of its kinds; None without such kinds
    write_gallery: Callable[[Any, Path, Mapping[str, Any]], None] | None = None
    print: Callable[[Any], None] | None = None  # its text on a terminal

    def with_gallery(self, result: Document, path: Path, samples: Mapping[str, Any]) -> Path:
        """Write the page of a result, and the folder of all members of its kinds; return the path of the page."""
        if self.write_gallery is None:
            raise UsageError(f"a {result.type_name} has no kinds with a map: pass gallery with a comparison or kinds")
        self.write_gallery(result, path, samples)
        return path

    def html(self, result: Document, samples: Mapping[str, Any]) -> str:
        """Return the page of a result: one HTML file that loads nothing.

        Samples that cannot be read are shown by their ids, and the page says why. `samples` are where the samples of a
        set are now, by label. A page of more than 1.5 MB shows fewer pictures, unless more than usual were asked for.
        """
        from finc_eval.gallery.counts import SHOWN_SAMPLES
        from finc_eval.gallery.pictured import Pictured

        text = self._html(result, samples)
        while len(text) > MAX_PAGE and isinstance(result, Pictured) and 1 < result.shown <= SHOWN_SAMPLES:
            result = result.showing_fewer(samples)
            text = self._html(result, samples)
        return text

    def _html(self, result: Document, samples: Mapping[str, Any]) -> str:
        from finc_eval.gallery.pictured import Pictured
        from finc_eval.report.pages import render

        if self.draw is not None:
            return self.draw(result, samples)
        if isinstance(result, Pictured):
            return render(result, self.outline(result), result.gallery_of(samples))
        if samples:
            raise UsageError(f'pages of the type "{result.type_name}" show no samples: leave samples out')
        return render(result, self.outline(result))

    def markdown(self, result: Document) -> str:
        """Return a result as Markdown."""
        from finc_eval.report.exports.markdown import markdown
        from finc_eval.report.exports.outline import how_made

        said = self.outline(result)
        return markdown(said, how_made(result.provenance, said.call), result.mark)

    def latex(self, result: Document) -> str:
        """Return the tables of a result as LaTeX."""
        from finc_eval.report.exports.paper import latex

        return latex(self.outline(result))

    def figure(self, result: Document, alpha: float) -> Figure:
        """Return the numbers of a result as a figure of matplotlib."""
        from finc_eval.report.exports.paper import figure_of

        return figure_of(result._cell_rows(), alpha)

    def fragment(self, result: Document, samples: Mapping[str, Any]) -> str:
        """Return the headline and the tables of a result as a notebook shows them."""
        from finc_eval.report.pages import notebook_view

        return notebook_view((self.notebook or self.outline)(result), self.gallery_of(result, samples))

    def gallery_of(self, result: Document, samples: Mapping[str, Any]) -> Gallery:
        """Return the pictures of the samples that a result shows, and where the samples are now, by label."""
        from finc_eval.gallery.pictured import Pictured
        from finc_eval.report.pages import NO_GALLERY

        if self.gallery is not None:
            return self.gallery(result, samples)
        return result.gallery_of(samples) if isinstance(result, Pictured) else NO_GALLERY

    def show(self, result: Document) -> None:
        """Print the tables of a result, and what was found, on standard output."""
        from finc_eval.report.terminal import print_outline

        print_outline(self.outline(result)) if self.print is None else self.print(result)


def page_of(result: Document) -> Page:
    """Return how a result is drawn, from the module that it names."""
    return cast(Page, import_module(result.page).PAGE)


def page(result: Document, samples: Mapping[str, Any]) -> str:
    """Return the page of a result, as `Page.html` does."""
    return page_of(result).html(result, samples)


def outline(result: Document) -> Outline:
    """Return what a result says in all of its outputs."""
    return page_of(result).outline(result)


def fragment(result: Document, samples: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return the view of a result for a notebook, as `Page.fragment` does."""
    return page_of(result).fragment(result, samples)


def show(result: Document) -> None:
    """Print a result, as `Page.show` does."""
    page_of(result).show(result)
