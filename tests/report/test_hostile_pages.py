"""Whatever names, labels, prompts and ids hold, the page has the same elements as with harmless ones."""

import random
from dataclasses import replace

import pytest
from _pages import BREAKOUT, HOSTILE, Page, a_comparison, a_mode, a_tail, made_by, noise

from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.captions import Caption
from finc_eval.gallery.thumbnails import thumbnail
from finc_eval.naming.evidence import Evidence
from finc_eval.report.comparison import fragment, page

MARKUP = ("</script>", "<script>", "</style>", "<!--", "-->", "<![CDATA[", "]]>", "&lt;", "{{ 7*7 }}", "{% raw %}")
QUOTES = ('"', "'", "`", "=", "\\", " onload=alert(1) ", "javascript:alert(1)", "#mode-", "<!-- navigation -->")
MARKS = ("\u202e", "\u200f", "\u0000", "\u2028", "\ud800", "é", "漢字", "🙂", "\n", "\t", " ", "%")
PIECES = (*MARKUP, *QUOTES, *MARKS, '<h2 id="x">y</h2>', HOSTILE, BREAKOUT)


def made_of(text):
    """A comparison in which `text` gives every string that can come from outside."""
    ids = tuple(f"{i}{text()}" for i in range(3))
    tail = a_tail(ids, ids)
    evidence = tuple(Evidence(text(), text(), 0.9, 0.1, 0.001) for _ in range(3))
    named = {"name": text() or "x", "evidence": evidence, "tails": (tail, replace(tail, share=0.4))}
    picture = thumbnail(noise(1, 1)[0])
    return a_comparison(
        [a_mode("over-1", looks_different="under-1", **named)],
        [a_mode("under-1", "under", **named)],
        gen=SetInfo(f"gen{text()}", None, 100, text(), False),
        ref=SetInfo(f"ref{text()}", None, 100, text(), False),
        warnings=(text(),),
        space=text(),
        sigma_rule=text(),
        provenance=replace(made_by("1"), command=text(), device=text()),
        kept={label: dict.fromkeys(ids, picture) for label in ("gen", "ref")},
        captions={"gen": {name: Caption((text(), text()), (ids[0], 0.5)) for name in ids}},
    )


@pytest.mark.parametrize("render", [lambda one: page(one, {}), fragment])
def test_hostile_text_changes_no_element(render):
    harmless = [(tag, sorted(attributes)) for tag, attributes, _ in Page(render(made_of(lambda: "x"))).elements]
    for seed in range(40):
        rng = random.Random(seed)
        text = render(made_of(lambda: "x" + "".join(rng.choices(PIECES, k=rng.choice((1, 3, 9))))))  # noqa: B023
        text.encode("utf-8")
        found = Page(text)
        assert [(tag, sorted(attributes)) for tag, attributes, _ in found.elements] == harmless, seed
        assert "\u202e" not in text and "\u0000" not in text
        for _, attributes, _ in found.elements:
            assert attributes.get("src", "data:image/").startswith("data:image/")
            assert attributes.get("href", "#").startswith("#")


def test_a_word_of_ten_thousand_bytes_is_shown():
    word = "w" * 10_000
    assert word in page(made_of(lambda: word), {})
