"""What the tests of the pages share: a parser that checks nesting, comparisons made up by hand, and pictures."""

import base64
import io
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
from PIL import Image

from finc_eval import report
from finc_eval.comparison.direction import Direction, Tail
from finc_eval.comparison.result import Comparison, Spectrum
from finc_eval.comparison.settings import Settings
from finc_eval.core.provenance import Provenance
from finc_eval.core.signature import Signature
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.feature_maps.approximation import KernelError
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.naming.evidence import Evidence
from finc_eval.partitions.kind import Kind, KindShare
from finc_eval.report.terminal import PLAIN, print_table

HOSTILE = "<img src=x onerror=alert(1)>\"'&.png"
BREAKOUT = "</style></title></svg></code><script>alert(1)</script>' onload='alert(2)"
VOID = {"meta", "img", "br", "col", "path", "circle", "rect", "use", "link", "base", "input"}


class Page(HTMLParser):
    """Every element as (tag, attributes), and the text of elements found by tag and class."""

    def __init__(self, text):
        super().__init__()
        self.elements, self._open, self._text = [], [], {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        number = len(self.elements)
        self.elements.append((tag, dict(attrs), tuple(self._open)))
        self._text[number] = ""
        if tag not in VOID:
            self._open.append(number)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), tuple(self._open)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.elements[self._open[-1]][0] == tag, f"</{tag}> closes {self.elements[self._open[-1]]}"
            self._open.pop()

    def handle_data(self, data):
        # The words of a drawing are not in the text of what is around it, nor is a script.
        tags = [self.elements[number][0] for number in self._open]
        inner = "script" if tags[-1:] == ["script"] else "svg" if tags[-1:] in (["title"], ["desc"]) else None
        for number in self._open[tags.index(inner) if inner in tags else 0 :]:
            self._text[number] += data

    def find(self, tag, cls=None, inside=None):
        return [
            number
            for number, (name, attrs, parents) in enumerate(self.elements)
            if name == tag
            and (cls is None or cls in (attrs.get("class") or "").split())
            and (inside is None or inside in parents)
        ]

    def shown(self, inside):
        """Return the pictures inside an element that are not those of all members, which a card has folded."""
        members = {*self.find("details", "members")}
        return [number for number in self.find("img", inside=inside) if members.isdisjoint(self.elements[number][2])]

    def text(self, number):
        return " ".join(self._text[number].split())

    def texts(self, tag, cls=None, inside=None):
        return [self.text(number) for number in self.find(tag, cls, inside)]

    def attributes(self, number):
        return self.elements[number][1]

    def section(self, mode):
        return self.by_id(f"mode-{mode.id}")

    def by_id(self, name):
        return next(n for n, (_, attributes, _) in enumerate(self.elements) if attributes.get("id") == name)

    def folded(self, number):
        """Tell whether an element is inside <details>."""
        return any(self.elements[parent][0] == "details" for parent in self.elements[number][2])

    @property
    def visible(self):
        return self.text(self.find("body")[0])


def a_tail(gen_ids, ref_ids, share=1.0):
    def scores(ids):
        return np.linspace(0.9, 0.5, len(ids), dtype=np.float32)

    def index(ids):
        return np.arange(len(ids))

    return Tail(share, index(gen_ids), index(ref_ids), gen_ids, ref_ids, scores(gen_ids), scores(ref_ids))


def a_mode(id, role="over", tails=None, **changes):
    ids = tuple(str(i) for i in range(20))
    values = {
        "name": None,
        "evidence": (),
        "cause": None,
        "looks_different": None,
        "kinds": (),
        "shown_by_kinds": False,
        "share_gen": 0.131,
        "share_ref": 0.04,
        "share_gen_interval": (0.102, 0.163),
        "share_ref_interval": (0.021, 0.064),
        "share_difference": 0.091,
        "share_difference_interval": (0.062, 0.12),
        "threshold": 0.4,
        "excess": 0.0875,
        "mass_gen": 0.0912,
        "mass_ref": 0.0037,
        "interval": (0.0721, 0.1029),
        "p_value": 3.2e-9,
        "standard_error": 0.01,
        "stability": 0.974,
        "fitted_excess": 0.09,
        **changes,
    }
    tails = tails or (a_tail(ids, ids), a_tail((), (), 0.0))
    drawn = {"drawn_gen": tails[0].gen_ids[8:16], "drawn_ref": tails[0].ref_ids[8:16]}
    return Direction(id=id, role=role, direction=np.zeros(8, np.float32), tails=tails, **drawn | values)


def a_kind(id, gen=0.131, ref=0.04, *, ids=tuple(str(i) for i in range(16)), labels=("gen", "ref"), **changes):
    """A kind of two sets with these shares; its intervals are ±3 points."""

    def share(value):
        interval = (max(value - 0.03, 0), value + 0.03)
        rows = tuple(range(8)), tuple(range(8, 16))
        return KindShare(round(1000 * value), value, interval, ids[:8], ids[8:16], *rows)

    first, second = labels
    difference = abs(gen - ref)
    values = {
        "set_with_most": first if gen > ref else second,
        "set_with_least": None,
        "p_value": 3.2e-9,
        "name": None,
        "evidence": (),
        "shares": {first: share(gen), second: share(ref)},
        "difference": difference,
        "interval": (difference - 0.03, difference + 0.03),
        **changes,
    }
    return Kind(id=id, **values)


def named(mode, text, *evidence):
    """The kind or direction with a name, and evidence for it: (source, value) each."""
    found = tuple(Evidence(source, value, 0.9, 0.1, 0.0) for source, value in evidence)
    return replace(mode, name=text, evidence=found)


def made_by(version):
    return Provenance({"finc-eval": version}, "cpu", None, None)


def a_comparison(over=(), under=(), kinds=(), headings=(), **changes):
    """A comparison of these directions and kinds; without kinds, one that was not asked for them."""
    base = Comparison(
        kinds=tuple(kinds),
        headings=tuple(headings),
        over=tuple(over),
        under=tuple(under),
        difference=0.12 if kinds else None,
        difference_interval=(0.09, 0.15) if kinds else None,
        difference_p_value=0.0005 if kinds else None,
        detectable=0.0194 if kinds else None,
        gen=SetInfo("gen", None, 1200, "aa11", False),
        ref=SetInfo("ref", None, 3400, "bb22", False),
        settings=Settings(sigma=8.25, features=500, seed=7),
        sigma_rule="0.5 x median distance",
        signature=Signature("finc", (("n", "1200/3400"), ("r", "500"))),
        space="pixels@1234",
        tested=26,
        kinds_tested=371 if kinds else 0,
        spectrum=Spectrum((0.12, 0.03, 0.01), (0.08, 0.02)),
        kernel_error=KernelError(0.031, 0.16, 499_500),
        copies=None,
        warnings=(),
        feature_map=RandomFourierFeatures(3, 4, sigma=1.0),
        divided=None,
        provenance=made_by("9.8.7"),
    )
    return replace(base, **{"findings": None} | changes)  # findings of these kinds and looks


OVER = a_mode("over-aaaaaa")
UNDER = a_mode(
    "under-bbbbbb",
    "under",
    share_gen=0.02,
    share_ref=0.1,
    share_gen_interval=(0.008, 0.04),
    share_ref_interval=(0.072, 0.131),
    share_difference=-0.08,
    share_difference_interval=(-0.112, -0.05),
    excess=0.05,
    mass_gen=0.02,
    mass_ref=0.07,
    interval=(0.031, 0.069),
    p_value=0.004,
)


MORE = a_kind("k1")
LESS = a_kind("k2", 0.02, 0.1)
SAME = a_kind("k3", 0.849, 0.86, p_value=1.0)
"""Three kinds of all samples of two sets."""

THREES = named(MORE, "mostly 3 (94 %), brighter", ("label", "3"), ("trait", "brighter"))
SEVENS = named(LESS, "7 and 9 (50 %, 41 %)", ("label", "7"), ("label", "9"))


def on_a_terminal(show, monkeypatch, capsys, width=80):
    """What `show` prints on a terminal, and the tables it prints: (columns, rows, names) each."""
    tables = []

    def recorded(title, columns, rows, **options):
        tables.append((list(columns), [list(row) for row in rows], options.get("names", ())))
        print_table(title, columns, tables[-1][1], **options)

    capsys.readouterr()
    with monkeypatch.context() as patched:
        patched.setattr("finc_eval.report.terminal.print_table", recorded)
        patched.setattr(sys.stdout, "isatty", lambda: True)
        patched.setenv("COLUMNS", str(width))
        show()
    return re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out), tables


def check_fits_a_terminal(result, monkeypatch, capsys, width=80):
    """Check that no table is wider than the terminal, that no number is cut, and that names keep beginning and id."""
    text, tables = on_a_terminal(lambda: report.show(result), monkeypatch, capsys, width)
    drawn = [line for line in text.splitlines() if line[:1] in ("+", "|")]
    assert tables and all(len(line) <= width for line in drawn)
    cells = cells_of_columns(drawn)
    words = {word for column in cells for word in column.split()}
    for columns, rows, names in tables:
        for row in rows:
            for column, cell in zip(columns, [cell.translate(PLAIN) for cell in row], strict=True):
                if column in names:
                    assert any(is_shown(cell, shown) for shown in cells), cell
                else:
                    assert {*cell.split()} <= words, cell
    return text


def table_rows(text):
    """The cells of the rows of tables in a log, without headings and rules."""
    rows = []
    for body in re.findall(r"^\|[-+]+\|\n((?:\| .*\n)*)", text, re.M):
        begun = len(rows)
        for line in body.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(rows) > begun and cells.count("") > rows[begun].count(""):  # the end of a wrapped name
                rows[-1] = [f"{one} {more}".strip() for one, more in zip(rows[-1], cells, strict=True)]
            else:
                rows.append(cells)
    return rows


def cells_of_columns(drawn):
    """The text of each column of each table, from its first cell to its last, without the ends of lines."""
    found, columns = [], []
    for line in drawn:
        if line[:1] == "|" and line[1] != "-":
            columns.append([cell.strip() for cell in line.strip("|").split("|")])
        else:
            found += [" ".join(filter(None, cells)) for cells in zip(*columns, strict=True)] if line[:1] == "+" else []
            columns = []
    return found


def is_shown(name, column):
    """Return whether a column has a name: whole, or its beginning, "...", and its last line, which ends in its id."""
    id = name.rpartition(", ")[2]
    cut = re.escape(name[:8]) + r".*?\.\.\. (.*)"
    ends = [rest for found in re.finditer(f"(?={cut})", column) for rest in found.groups()]
    return f" {name} " in f" {column} " or any(f"{rest} ".find(f"{id} ") >= 0 for rest in ends)


def noise(seed, n=20, size=28):
    return np.random.default_rng(seed).integers(0, 256, (n, size, size, 3), np.uint8)


def pixels(uri):
    data = base64.b64decode(uri.split(",", 1)[1], validate=True)
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
