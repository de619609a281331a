"""Two sets in several spaces: which space sees which kind, one α for all, and SPEC's clusters."""

import re

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.comparison.spaces import SAME, difference_of_kernels
from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings import base
from finc_eval.extractors.settings import extractions_by_space
from finc_eval.numerics.eigen import extreme_eigenpairs

EVEN = np.full(5, 0.2)
MORE = np.array([0.4, 0.15, 0.15, 0.15, 0.15])


def space(labels, seed):
    """Embeddings around a center of each label, (n, 20)."""
    centers = np.random.default_rng(seed).normal(size=(labels.max() + 1, 20)) * 4
    return (centers[labels] + np.random.default_rng([seed, len(labels)]).normal(size=(len(labels), 20))).astype("f4")


def sets(content=EVEN, motion=EVEN, n=400, seed=0):
    """Gen, with these shares of five kinds of content and of motion, and ref, where all are even; by space."""
    rng, found = np.random.default_rng(seed), []
    for shares in ((content, motion), (EVEN, EVEN)):
        labels = [rng.choice(5, n, p=one) for one in shares]
        found.append({"content": space(labels[0], 1), "motion": space(labels[1], 2)})
    return found


def seen(found):
    return {one.space: one.seen_by for one in found.kinds if found.kind_of(one).share_difference > 0}


@pytest.fixture(scope="module")
def moved():
    return fe.compare(*sets(motion=MORE), method="clusters", features=20)


def test_what_differs_in_one_space_is_told_as_such(moved):
    assert {one.space for one in moved.kinds} == {"motion"}
    assert seen(moved) == {"motion": ("motion",)}
    assert "in motion; the other space does not show" in moved.to_markdown()


def test_one_kind_in_two_spaces_is_one_kind():
    rng = np.random.default_rng(3)
    labels = [rng.choice(5, 600, p=shares) for shares in (MORE, EVEN)]
    gen, ref = ({"a": space(own, 1), "b": space(own, 2)} for own in labels)
    found = fe.compare(gen, ref, method="clusters", features=20)
    assert seen(found) == {"a": ("a", "b"), "b": ("b", "a")}
    assert f"1 kind differs in a; “{found.kind_of(found.kinds[0]).title}” also in b" in found.to_markdown()
    for one in found.kinds:
        (other,) = one.elsewhere.values()
        assert other.jaccard > 0.9 > SAME
        assert np.sign(found.kind_of(one).share_difference) == np.sign(
            next(k for k in found.comparisons[next(iter(one.elsewhere))].kinds if k.id == other.id).share_difference
        )


def test_the_overlap_of_kinds_is_counted_over_all_samples(moved):
    gen, ref = sets(motion=MORE)
    content, motion = (moved.comparisons[name] for name in ("content", "motion"))
    place = {
        name: np.concatenate([one.assign(gen[name]), one.assign(ref[name])]) for name, one in moved.comparisons.items()
    }
    for one in moved.kinds:
        mine = place["motion"] == [kind.id for kind in motion.kinds].index(one.id)
        best = max(
            (
                (mine & (place["content"] == number)).sum() / (mine | (place["content"] == number)).sum()
                for number, kind in enumerate(content.kinds)
                if 2 * kind.p_value <= 0.05
            ),
            default=0.0,
        )
        assert one.elsewhere["content"].jaccard == pytest.approx(best)


@pytest.mark.long  # one space in portions: test_kinds_of_comparison.py
def test_a_space_of_wide_rows_is_compared_with_one_of_narrow_rows(monkeypatch):
    narrow = sets(motion=MORE)
    wide = [{**one, "content": np.hstack([one["content"]] * 3)} for one in narrow]
    whole = fe.compare(*wide, features=60)
    monkeypatch.setattr(base, "BATCH_ENTRIES", 10_000)
    assert seen(fe.compare(*wide, features=60)) == seen(whole)


def test_alpha_is_shared_by_the_spaces(moved):
    for one in moved.kinds:
        assert one.p_value == min(1.0, 2 * moved.kind_of(one).p_value)
    alone = fe.compare(*({name: one[name] for name in ("content", "motion")} for one in sets(n=200)), features=20, modes=2)
    assert [one for one in alone.kinds if one.p_value > 0.05] == []


def test_clusters_are_the_eigenvectors_of_the_difference_of_kernels():
    rng = torch.Generator().manual_seed(0)
    first, second = (torch.nn.functional.normalize(torch.randn(300, q, generator=rng)) for q in (40, 60))
    first[:50] = torch.nn.functional.normalize(first[:50] + 3 * first[:1])
    center = torch.eye(300, dtype=torch.double) - 1 / 300
    kernels = [center @ (one.double() @ one.double().T) @ center for one in (first, second)]
    values, vectors = torch.linalg.eigh((kernels[0] - kernels[1]) / 300)
    (most, more), (least, less) = extreme_eigenpairs(difference_of_kernels(first, second), 3)
    torch.testing.assert_close(most.double(), values.flip(0)[:3], rtol=0, atol=1e-6)
    torch.testing.assert_close(least.double(), -values[:3], rtol=0, atol=1e-6)
    assert ((more[:, 0].double() @ vectors[:, -1]).abs() - 1).abs() < 1e-4
    assert ((less[:, 0].double() @ vectors[:, 0]).abs() - 1).abs() < 1e-4
    assert set(more[:, 0].topk(30).indices.tolist()) <= set(range(50))


def test_samples_that_one_space_alone_holds_together_are_of_one_kind_there(moved):
    for cluster in moved.clusters:
        assert 0 < cluster.eigenvalue < 1
        assert sum(map(len, cluster.ids.values())) == 16
        kinds = moved.comparisons[cluster.space]
        gen, ref = sets(motion=MORE)
        rows = [
            {"gen": gen, "ref": ref}[label][cluster.space][int(one)]
            for label, ids in cluster.ids.items()
            for one in ids
        ]
        counts = np.bincount(kinds.assign(np.stack(rows)), minlength=len(kinds.kinds))
        assert kinds.kinds[int(counts.argmax())].id == cluster.kind and counts.max() > 8


def test_a_saved_result_is_the_same_again(moved, tmp_path):
    moved.save(tmp_path / "s.h5")
    again = fe.load(tmp_path / "s.h5")
    assert again.to_dict() == moved.to_dict()
    assert again.to_markdown() == moved.to_markdown()
    moved.to_html(tmp_path / "s.html")
    assert "Samples that one space holds together" in (tmp_path / "s.html").read_text()
    frame = moved.to_frame()
    assert list(frame["space"]) == [one.space for one in moved.kinds]


ONE = np.zeros((40, 3), np.float32)
MISTAKES = {
    "one space": (({"a": ONE}, {"a": ONE}), {}, "got the spaces a: name two extractors or more, once"),
    "unlike spaces": (({"a": ONE, "b": ONE}, {"a": ONE}), {}, "gen has the spaces a, b, and ref a"),
    "extractors of embeddings": (
        ({"a": ONE, "b": ONE}, {"a": ONE, "b": ONE}), {"extractor": ["motion"]}, "without extractors"
    ),
    "no extractor": ((ONE, ONE), {"extractor": []}, "of no extractor: name two extractors or more"),
    "one of two names": ((ONE, ONE), {"extractor": ["motion", "motion"]}, "got the spaces motion, motion"),
    "no kinds": (({"a": ONE, "b": ONE},) * 2, {"method": "ken"}, "spaces are compared by their kinds"),
    "earlier kinds": (({"a": ONE, "b": ONE},) * 2, {"kinds": "old.h5"}, "belong to a single space: give one extractor"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_what_cannot_be_compared_gets_one_sentence(case):
    sources, options, message = MISTAKES[case]
    with pytest.raises(FincEvalError, match=message):
        fe.compare(*sources, **options)


def test_spaces_must_hold_the_same_samples():
    gen, ref = sets(n=100)
    gen["motion"] = gen["motion"][:80]
    with pytest.raises(
        fe.IncompatibleError, match="gen has 100 samples in content and 80 in motion, which are not the same"
    ):
        fe.compare(gen, ref, features=20, modes=2)


def test_beside_an_extractor_of_clips_a_network_of_images_embeds_frames():
    card = fe.load_card("efficientnet-lite0:frames")
    assert (card.name, card.takes, card.output.frames) == ("efficientnet-lite0:frames", "clips", "mean")
    with pytest.raises(fe.UsageError, match="motion takes clips"):
        fe.load_card("motion:frames")
    beside = extractions_by_space(["efficientnet-lite0", "motion"])
    assert {name: how.extractor for name, how in beside.items()} == {
        "efficientnet-lite0:frames": "efficientnet-lite0:frames",
        "motion": "motion",
    }
    assert list(extractions_by_space(["efficientnet-lite0", "pixels"])) == ["efficientnet-lite0", "pixels"]


def test_each_space_has_a_map_with_the_kinds_of_the_list_in_color(moved, tmp_path):
    text = moved.to_html(tmp_path / "page.html").read_text()
    maps = re.findall(
        r'<figcaption><span class="">(\w+)</span></figcaption>(<svg class="map".*?</svg>)', text, re.DOTALL
    )
    assert [name for name, _ in maps] == ["content", "motion"]
    seen = {name: len(re.findall(r'<g class="(?:gen|ref)" fill', svg)) for name, svg in maps}
    assert seen == {name: sum(one.space == name for one in moved.kinds) for name in moved.comparisons}
    assert seen["motion"] > 0 and all(len(svg) < 150_000 for _, svg in maps)
