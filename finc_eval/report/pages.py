"""The parts that all pages share: templates, the number of samples shown, drawings of intervals."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import copysign, floor, log10
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from finc_eval.comparison.settings import METHODS
from finc_eval.core.errors import UsageError
from finc_eval.core.serialize import Document
from finc_eval.core.words import counted, figure, points
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.exports.made import how_made
from finc_eval.report.exports.outline import Outline
from finc_eval.report.formats import (
    interval,
    number,
    optional_percent,
    p_value,
    points_interval,
    printable,
    ratio,
    share_interval,
)

LEAD_SAMPLES = 3
"""Samples of a mode in the first table of a page."""

NO_SAMPLES: Mapping[str, Any] = MappingProxyType({})
"""Samples of a page that shows only what its result has kept."""

METHOD_NAMES = {name: method.title for name, method in METHODS.items()}
"""Names of the methods in prose."""

WHISKER_WIDTH = 160
"""Width of an interval drawing, in its own units; 6 are kept free at each end."""


def interval_scale(estimates: Iterable[tuple[float, tuple[float, float]]]) -> dict[str, Any]:
    """Return the one scale on which all intervals of a page are drawn.

    Args:
        estimates: pairs (estimate, (low, high)).

    Returns:
        The entries of `scale`, and a round `tick` on the longer side of zero.
    """
    ends = [0.0, *(end for estimate, interval in estimates for end in (*interval, estimate))]
    far = max(ends, key=abs)
    power = 10.0 ** floor(log10(abs(far))) if far else 1.0
    tick = max((step * power for step in (1, 2, 5) if step * power <= abs(far)), default=0.0)
    return {**scale(ends), "tick": copysign(tick, far)}


def scale(values: Sequence[float]) -> dict[str, Any]:
    """Return `at`, the place of a value in a drawing that these values fill, and the drawing's `width`."""
    low, high = min(values), max(values)
    span = high - low or 1.0
    return {"at": lambda value: f"{6 + (WHISKER_WIDTH - 12) * (value - low) / span:.1f}", "width": WHISKER_WIDTH}


def refuse_samples(result: Document, samples: Mapping[str, Any]) -> None:
    """Raise UsageError if samples were passed for a page that shows none."""
    if samples:
        raise UsageError(f'pages of the type "{result.type_name}" show no samples: leave samples out')


def kinds_in_words(count: int) -> str:
    """Return "1 kind of samples" or "2 kinds of samples"."""
    return f"{counted(count, 'kind')} of samples"


@cache
def environment() -> Environment:
    """Return the environment of the templates: their folder, escaping and filters."""
    made = Environment(
        loader=PackageLoader("finc_eval.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=printable,
    )
    filters: dict[str, Callable[..., object]] = {
        "number": number,
        "ratio": ratio,
        "p_value": p_value,
        "percent": optional_percent,
        "share_interval": share_interval,
        "points": points,
        "points_interval": points_interval,
        "interval": interval,
        "figure": figure,
        "count": lambda value: f"{value:,}",
        "unbroken": lambda text: Markup(str(escape(printable(text))).replace(" %", "&nbsp;%")),
    }
    made.filters.update(filters)
    return made


NAVIGATION = "<!-- navigation -->"
"""Place of the links to the sections of a page."""

SECTION = re.compile(r'<h2 id="([\w-]+)"[^>]*>(.*?)</h2>', re.DOTALL)


def render(template: str, result: Document, outline: Outline, /, **context: Any) -> str:
    """Return the page of a result, from its template and what all outputs of the result say."""
    made = how_made(result.provenance, outline.call)
    version = result.provenance.versions["finc-eval"]
    return framed(template, outline, result.mark, result=result, made=made, version=version, **context)


def framed(template: str, outline: Outline, mark: str, /, **context: Any) -> str:
    """Return a page of the family: header, links to its sections, policy, style and script are the same on all."""
    style, script = _asset("report.css"), _asset("report.js")
    shared: dict[str, Any] = {
        "style": style,
        "script": script,
        "style_hash": _hash(style),
        "script_hash": _hash(script),
        "navigation": Markup(NAVIGATION),
        "outline": outline,
        "alpha": ALPHA,
        "mark": mark,
        "summary": outline.headline,
        "warnings": outline.warnings,
        "notes": (),
        "has_pictures": lambda view: any(context["pictures"].get(one.label) for one in view.grids),
    }
    text = environment().get_template(template).render({**shared, **context})
    links = (f'<li><a href="#{name}">{Markup(heading).striptags()}</a></li>' for name, heading in SECTION.findall(text))
    return text.replace(NAVIGATION, "".join(links), 1)


def notebook_view(template: str, result: Document, /, **context: Any) -> str:
    """Return a part of a page that a notebook shows."""
    return environment().get_template(template).render(result=result, alpha=ALPHA, **context)


def style_of(*more: str) -> dict[str, Any]:
    """Return the style of a page with further style sheets, and its digest, in place of the common style."""
    style = Markup("\n").join([_asset("report.css"), *map(_asset, more)])
    return {"style": style, "style_hash": _hash(style)}


@cache
def _asset(name: str) -> Markup:
    loader = environment().loader
    assert loader is not None
    return Markup(loader.get_source(environment(), name)[0].strip())


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def table_fragment(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table for a notebook; it takes on the notebook's colors."""
    return environment().get_template("table_fragment.html").render(caption=caption, columns=columns, rows=rows)
