"""Results in which texts are another person's: the places of all their texts, and what outputs show of them."""

import contextlib
import io
import re
from copy import copy
from xml.etree import ElementTree

from _pages import Page

from finc_eval import report
from finc_eval.core.terminal import visible_output
from finc_eval.core.words import CONTROLS
from finc_eval.gates.pipelines import annotation_lines, junit_xml
from finc_eval.gates.verdict import Verdict
from finc_eval.golden import page as golden
from finc_eval.golden import pipelines as golden_pipelines
from finc_eval.golden.result import Night

MARKUP = "--><img src=http://127.0.0.1:9/a><b title=hostile>live</b></script></pre>]]>"
HOSTILE = f"x {MARKUP}\n# h\n```\n\x1b]0;t\x07\u202e\x00\ud800{{{{7*7}}}}{{x}}%s\\input{{/etc/passwd}}|`\t::error::"
"""A text that tries each output: elements, headings, control sequences, templates, formats, commands of LaTeX."""

HEAD = ("program", "type", "layout", "checksum")
"""Keys that every result checks for itself."""

NAME = object()
"""Last step of a place that is the name of a value in a table, not the value."""


def places(value, path=()):
    """Yield the place of every text, and of all that may be a text: names, what is None, the first of empty lists."""
    if isinstance(value, dict):
        for name, one in value.items():
            if path or name not in HEAD:
                yield (*path, name, NAME)
                yield from places(one, (*path, name))
        if not value:
            yield (*path, "new")
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from places(one, (*path, place))
        if not value:
            yield (*path, 0)
    elif isinstance(value, str) or value is None:
        yield path


def kind_of(path):
    """Return a place without the numbers of lists: the places of one kind hold the same sort of text."""
    return ".".join("name" if one is NAME else "#" if isinstance(one, int) else one for one in path)


def one_of_each_kind(data, only_texts=False):
    """Return the first place of each kind; of places that may hold a text, or only of those that do."""
    found = {}
    for path in places(data):
        if not only_texts or isinstance(_at(data, path), str):
            found.setdefault(kind_of(path), path)
    return [*found.values()]


def _at(data, path):
    for one in path:
        data = None if one is NAME or not data else data[one]
    return data


def plant(data, path, text):
    """Put a text at a place of plain JSON types."""
    is_name = path[-1] is NAME
    *above, last = path[:-1] if is_name else path
    for one in above:
        data = data[one]
    if is_name:
        items = [*data.items()]
        data.clear()
        data.update((text if name == last else name, one) for name, one in items)
    elif isinstance(data, list) and not data:
        data.append(text)
    else:
        data[last] = text


def planted(data, path, text):
    """Return plain JSON types with a text at a place; what is not above the place is that of `data`."""
    made = part = copy(data)
    for one in path[: -2 if path[-1] is NAME else -1]:
        part[one] = copy(part[one])
        part = part[one]
    plant(made, path, text)
    return made


def shown(result):
    with contextlib.redirect_stdout(io.StringIO()) as stream, visible_output():
        report.show(result)
    return stream.getvalue()


def outputs(result):
    """Return every output of a result that a person or a program shows, by its format."""
    made = {
        "page": report.page(result, {}),
        "md": result.to_markdown(),
        "latex": result.to_latex(),
        "csv": result.to_csv(),
        "notebook": result._repr_html_(),
        "repr": repr(result),
        "terminal": shown(result),
    }
    if isinstance(result, Night):
        text, _ = golden.comment(result, "c")
        told = "\n".join(golden_pipelines.annotation_lines(result))
        made |= {"junit": golden_pipelines.junit_xml(result), "github": told, "comment": text}
    if isinstance(result, Verdict):
        made |= {"junit": junit_xml(result), "github": "\n".join(annotation_lines(result))}
    return made


def faults(form, text):
    """Yield what is alive of a hostile text in an output."""
    text.encode("utf-8")
    if found := CONTROLS.search(text):
        yield f"{found[0]!r} in {text[max(0, found.start() - 60) : found.end()]!r}"
    if "\n# h" in text:
        yield f"a line of its own: {text[max(0, text.index(chr(10) + '# h') - 100) :][:120]!r}"
    if form in ("page", "notebook"):
        for tag, attributes, _ in Page(text).elements:
            if attributes.get("title") == "hostile" or "http" in (attributes.get("src") or ""):
                yield f"the element {tag} {attributes}"
    if form == "md":
        first, _, rest = text.partition("\n")
        if not re.fullmatch(r"<!-- finc-eval: [a-z-]+ [0-9a-f]{16} -->", first):
            yield f"the first line {first}"
        if found := re.search(r"(?<!\\)<(?:img|b|/)", re.sub(r"(?ms)^(`{3,})\n.*?^\1$", "", rest)):
            yield f"the element {found[0]}"
    if form == "latex" and re.search(r"(?<!\\textbackslash)\\input\{", text):
        yield "a command of LaTeX"
    if form == "junit":
        ElementTree.fromstring(text)
