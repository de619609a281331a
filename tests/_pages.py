"""What the tests of the pages share: a parser that checks nesting, comparisons made up by hand, and pictures."""

import base64
import io
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
from PIL import Image

from finc_eval.comparison.modes import Mode, Tail
from finc_eval.comparison.result import Comparison, Spectrum
from finc_eval.comparison.settings import Settings
from finc_eval.core.provenance import Provenance
from finc_eval.core.signature import Signature
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.feature_maps.approximation import KernelError
from finc_eval.feature_maps.fourier import RandomFourierFeatures

HOSTILE = "<img src=x onerror=alert(1)>\"'&.png"
BREAKOUT = "</style></title></svg></code><script>alert(1)</script>' onload='alert(2)"
VOID = {"meta", "img", "br", "path", "circle", "use", "link", "base", "input"}


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
        for number in self._open:
            self._text[number] += data

    def find(self, tag, cls=None, inside=None):
        return [
            number
            for number, (name, attrs, parents) in enumerate(self.elements)
            if name == tag
            and (cls is None or cls in (attrs.get("class") or "").split())
            and (inside is None or inside in parents)
        ]

    def text(self, number):
        return " ".join(self._text[number].split())

    def texts(self, tag, cls=None, inside=None):
        return [self.text(number) for number in self.find(tag, cls, inside)]

    def attributes(self, number):
        return self.elements[number][1]

    def section(self, mode):
        return next(n for n in self.find("section") if self.attributes(n).get("id") == f"mode-{mode.id}")

    @property
    def visible(self):
        return self.text(self.find("body")[0])


def a_tail(gen_ids, ref_ids, share=1.0):
    def scores(ids):
        return np.linspace(0.9, 0.5, len(ids), dtype=np.float32)

    def index(ids):
        return np.arange(len(ids))

    return Tail(share, index(gen_ids), index(ref_ids), gen_ids, ref_ids, scores(gen_ids), scores(ref_ids))


def a_mode(name, role="over", tails=None, **changes):
    ids = tuple(str(i) for i in range(20))
    values = {
        "excess": 0.0875,
        "mass_gen": 0.0912,
        "mass_ref": 0.0037,
        "interval": (0.0721, 0.1029),
        "p_value": 3.2e-9,
        "excess_frequency": 0.12,
        "standard_error": 0.01,
        "stability": 0.974,
        "fitted_excess": 0.09,
        **changes,
    }
    tails = tails or (a_tail(ids, ids), a_tail((), (), 0.0))
    return Mode(id=name, role=role, direction=np.zeros(8, np.float32), tails=tails, **values)


def made_by(version):
    return Provenance({"finc-eval": version}, "cpu", None, None)


def a_comparison(over=(), under=(), **changes):
    base = Comparison(
        over=tuple(over),
        under=tuple(under),
        gen=SetInfo("gen", None, 1200, "aa11", False),
        ref=SetInfo("ref", None, 3400, "bb22", False),
        settings=Settings(sigma=8.25, features=500, seed=7),
        sigma_rule="0.5 x median distance",
        signature=Signature("finc", (("n", "1200/3400"), ("r", "500"))),
        space="pixels@1234",
        tested=26,
        spectrum=Spectrum((0.12, 0.03, 0.01), (0.08, 0.02)),
        kernel_error=KernelError(0.031, 0.16, 499_500),
        copies=None,
        warnings=(),
        feature_map=RandomFourierFeatures(3, 4, sigma=1.0),
        provenance=made_by("9.8.7"),
    )
    return replace(base, **changes)


OVER = a_mode("over-aaaaaa")
UNDER = a_mode(
    "under-bbbbbb", "under", excess=0.05, mass_gen=0.02, mass_ref=0.07, interval=(0.031, 0.069), p_value=0.004
)


def noise(seed, n=20, size=28):
    return np.random.default_rng(seed).integers(0, 256, (n, size, size, 3), np.uint8)


def pixels(uri):
    data = base64.b64decode(uri.split(",", 1)[1], validate=True)
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
