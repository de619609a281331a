"""Whatever names, labels, prompts and ids hold, the page has the same elements as with harmless ones."""

import random
from dataclasses import replace
from functools import cache
from itertools import count

import pytest
from _pages import BREAKOUT, HOSTILE, LESS, Page, a_comparison, a_kind, a_mode, a_tail, made_by, noise

import finc_eval as fe
from finc_eval import report
from finc_eval.comparison.changes import Change, Changes
from finc_eval.comparison.sweep import Point, Sweep
from finc_eval.demo import example_sets
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.pictured import Caption
from finc_eval.gallery.thumbnails import thumbnail
from finc_eval.naming.evidence import Evidence
from finc_eval.report import fragment

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
    of_kinds = {"name": text() or "x", "evidence": evidence}
    kinds = [a_kind("k1", ids=ids, **of_kinds), replace(LESS, **of_kinds), a_kind("k3", p_value=1.0, ids=ids)]
    return a_comparison(
        [a_mode("over-1", looks_different="under-1", kinds=("k1",), **named)],
        [a_mode("under-1", "under", kinds=("k3",), **named)],
        kinds,
        [a_kind("k9", ids=ids, children=("k1",), **of_kinds)],
        gen=SetInfo(f"gen{text()}", None, 100, text(), False),
        ref=SetInfo(f"ref{text()}", None, 100, text(), False),
        warnings=(text(),),
        space=text(),
        sigma_rule=text(),
        provenance=replace(made_by("1"), command=text(), device=text()),
        kept={label: dict.fromkeys(ids, picture) for label in ("gen", "ref")},
        captions={"gen": {name: Caption((text(), text()), (ids[0], 0.5)) for name in ids}},
    )


@cache
def small():
    """Kinds of two sets, and a verdict on the first of them."""
    gen, ref = (rows[:, ::8] for rows in example_sets(200))
    return fe.kinds([gen, ref]), fe.gate(gen, ref, ref, {"kinds": {"lose": 0.5, "min_share": 0.1}})


def kinds_made_of(text):
    """Kinds of two sets in which `text` gives every name, label and id."""
    made, _ = small()
    labels = {label: f"{place}{text()}" for place, label in enumerate(made.sets)}

    def hostile(kind):
        least = kind.set_with_least
        return replace(
            kind,
            name=text(),
            evidence=(Evidence(text(), text(), 0.9, 0.1, 0.001),),
            set_with_most=labels[kind.set_with_most],
            set_with_least=least and labels[least],
            shares={
                labels[label]: replace(part, top_ids=tuple(f"{one}{text()}" for one in part.top_ids))
                for label, part in kind.shares.items()
            },
        )

    kinds, headings = (tuple(map(hostile, group)) for group in (made.kinds, made.headings))
    sets = {labels[label]: replace(info, name=text(), source=text()) for label, info in made.sets.items()}
    differences = {labels[label]: one for label, one in made.differences.items()}
    return replace(made, kinds=kinds, headings=headings, sets=sets, differences=differences, warnings=(text(),))


def verdict_made_of(text):
    """A verdict in which `text` gives every name and id."""
    _, made = small()
    limits = tuple(
        replace(
            limit,
            name=f"kinds.lose {place}{text()}",
            note=f"x{text()}",
            examples={label: tuple(f"{one}{text()}" for one in ids) for label, ids in limit.examples.items()},
        )
        for place, limit in enumerate(made.limits)
    )
    return replace(made, limits=limits, warnings=(text(),))


def sweep_made_of(text):
    """A sweep of two comparisons in which `text` gives every string."""
    points = tuple(Point(value, made_of(text), (0.5, None)) for value in (1.0, 2.0))
    return Sweep("sigma", points, 1.0, (text(),), provenance=made_by("1"))


def changes_made_of(text):
    """A change in which `text` gives every name and id."""
    found = made_of(text)
    shares = dict(zip(("new", "old"), found.kinds[0].shares.values(), strict=True))
    kind = replace(found.kinds[0], set_with_most="new", shares=shares)
    sets = dict.fromkeys(("old", "new", "ref"), found.gen)
    change = Change("new", "over", kind, 0.02)
    return Changes((change,), 0.05, found.signature, found.signature, sets, provenance=made_by("1"))


def page_of(result):
    return report.page(result, {})


def elements_of(page):
    """The elements of a page with their attributes, and those of its map, which places labels by their length."""
    drawn = {*page.find("svg", "map")}
    parts = [[], []]
    for tag, attributes, parents in page.elements:
        parts[not drawn.isdisjoint(parents)].append((tag, sorted(attributes)))
    return parts


@pytest.mark.parametrize(
    ("render", "made_of"),
    [
        pytest.param(page_of, made_of, id="comparison"),
        pytest.param(fragment, made_of, id="fragment"),
        pytest.param(page_of, kinds_made_of, id="kinds"),
        pytest.param(page_of, verdict_made_of, id="verdict"),
        pytest.param(page_of, sweep_made_of, id="sweep"),
        pytest.param(page_of, changes_made_of, id="changes"),
    ],
)
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 20), marks=pytest.mark.long)], ids=["few", "many"])
def test_hostile_text_changes_no_element(render, made_of, seeds):
    numbers = count()  # all names differ, as hostile ones do
    harmless, drawn = elements_of(Page(render(made_of(lambda: f"x{next(numbers)}"))))
    for seed in seeds:
        rng = random.Random(seed)
        text = render(made_of(lambda: "x" + "".join(rng.choices(PIECES, k=rng.choice((1, 3, 9))))))  # noqa: B023
        text.encode("utf-8")
        found = Page(text)
        written, on_map = elements_of(found)
        assert written == harmless, seed
        assert {*map(str, on_map)} <= {*map(str, [*harmless, *drawn])}, seed
        assert "\u202e" not in text and "\u0000" not in text
        for _, attributes, _ in found.elements:
            assert attributes.get("src", "data:image/").startswith("data:image/")
            assert attributes.get("href", "#").startswith("#")


def test_a_word_of_ten_thousand_bytes_is_shown():
    word = "w" * 10_000
    assert word in page_of(made_of(lambda: word))
