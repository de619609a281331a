"""Looks of several sets: each is compared with all others together, and a cause is said of one set."""

import numpy as np
import pytest
from _pages import Page
from PIL import Image, ImageFilter

import finc_eval as fe
from finc_eval import report
from finc_eval.report.cards import anchor

N = 60


def scene(rng):
    """A mixture of large and small blocks of random colors."""
    layers = [
        np.asarray(Image.fromarray(rng.integers(0, 256, (side, side, 3), dtype=np.uint8)).resize((32, 32), how), float)
        for side, how in ((2, 3), (5, 3), (12, 0), (24, 0))
    ]
    mixed = np.tensordot(rng.dirichlet((4, 3, 2, 1.5)), layers, 1)
    return Image.fromarray(
        ((mixed - 128) * rng.uniform(0.8, 1.6) + rng.uniform(100, 150)).clip(0, 255).astype(np.uint8)
    )


def scenes(seed):
    rng = np.random.default_rng(seed)
    return [scene(rng) for _ in range(N)]


def blurred(images):
    return [one.filter(ImageFilter.GaussianBlur(1.5)) if place % 3 == 0 else one for place, one in enumerate(images)]


def darkened(images):
    return [one.point(lambda value: value // 2) for one in images]


def as_set(images, name):
    rows = np.random.default_rng(len(name)).normal(size=(len(images), 3)).astype(np.float32)
    return fe.EmbeddingSet(rows, images=images, name=name)


def sets_of(changes):
    return {name: as_set(change(scenes(seed)), name) for seed, (name, change) in enumerate(changes.items())}


PLAIN = list
CASES = {  # what is done to each set, and the traits that are said of each
    "one is blurred": ({"a": blurred, "b": PLAIN, "c": PLAIN}, {"a": ["sharpness"], "b": [], "c": []}),
    "one of two is darker": ({"a": PLAIN, "b": darkened}, {"a": [], "b": ["brightness"]}),
    "two have faults": ({"a": blurred, "b": darkened, "c": PLAIN}, {"a": ["sharpness"], "b": ["brightness"], "c": []}),
    "none": ({"a": PLAIN, "b": PLAIN, "c": PLAIN}, {"a": [], "b": [], "c": []}),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", CASES)
def test_a_look_is_said_of_the_set_that_has_it(case):
    changes, traits = CASES[case]
    found = fe.kinds(sets_of(changes))
    assert {label: [look.trait for look in looks] for label, looks in found.looks.items()} == traits
    said = found.says.get("looks", "")
    assert all((f"{label} is" in said) == bool(names) for label, names in traits.items())


@pytest.fixture(scope="module")
def with_blur():
    return fe.kinds(sets_of(CASES["one is blurred"][0]))


def test_the_page_has_a_card_in_the_color_of_the_set_with_its_members_and_how_the_look_is_spread(with_blur, tmp_path):
    page, (look,) = Page(report.page(with_blur, {})), with_blur.looks["a"]
    card = page.by_id(anchor(f"a: {look.name}"))
    assert "model-0" in page.attributes(card)["class"] and len(page.find("svg", "spread", card)) == 1
    shown = [page.attributes(n)["alt"] for n in page.shown(card)]
    assert shown == [*look.examples["gen"][: with_blur.shown]] and {int(one) % 3 for one in shown} == {0}
    (fold,) = page.find("details", "members", card)
    assert page.texts("code", inside=fold)[0].split() == [*look.examples["gen"]]
    with_blur.save(tmp_path / "k.h5")
    assert report.page(fe.load(tmp_path / "k.h5"), {}) == report.page(with_blur, {})


def test_sets_without_pictures_and_paired_sets_have_no_looks():
    arrays = {name: np.random.default_rng(seed).normal(size=(60, 3)) for seed, name in enumerate("abc")}
    assert fe.kinds(arrays).looks == {}
    sets = {
        name: fe.EmbeddingSet(each.rows_at(np.arange(N)), metadata={"prompt": [str(n) for n in range(N)]}, name=name)
        for name, each in sets_of(CASES["one is blurred"][0]).items()
    }
    assert fe.kinds(sets, pairs="prompt").looks == {}


def test_a_member_list_of_a_look_is_asked_by_its_set_and_name(with_blur):
    (look,) = with_blur.looks["a"]
    assert with_blur.members(f"a: {look.name}") == {"a": look.examples["gen"]}
