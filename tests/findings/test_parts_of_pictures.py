"""Parts of pictures as findings: what names them, in which words, and with which samples."""

import numpy as np
import pytest
import torch
from _celled import celled

import finc_eval as fe
from finc_eval.comparison.headline import details
from finc_eval.findings.causes import Held, causes_of, follow_whole_looks
from finc_eval.findings.facts import name_alone, short
from finc_eval.findings.finding import Finding
from finc_eval.findings.local import PartOfSet

N = 200  # samples of each set


def members(gen=(), ref=()):
    """Samples from the first to the last of each set, by set."""
    rows = np.arange(N)
    return {
        label: np.isin(rows, range(*ends)) if ends else np.zeros(N, bool)
        for label, ends in (("gen", gen), ("ref", ref))
    }


def a_part(side="more", name=None, at_least=0.2):
    ids = tuple(f"{number}.png" for number in range(20))
    return PartOfSet("patches", name, side, 0.002, 0.4, 0.1, at_least, ids, ids[:2])


def hold(finding, mask):
    return Held(finding, mask, finding.name, share=0.3 * (finding.kind == "part"))


PART = hold(a_part().finding, members((0, 80), (0, 20)))
LACK = hold(a_part("less").finding, members((180, 200), (140, 200)))
LOOK = Finding("blurred", "look", False, 0.35, 0.02, 0.001)
KIND = Finding("barn spider", "kind", False, 0.35, 0.0, 0.001, ("k1",))
FEW = Finding("barn spider", "kind", False, 0.05, 0.0, 0.001, ("k1",))
SMALL = Finding("blurred", "look", False, 0.05, 0.0, 0.001)
GRAY = Held(
    Finding("like “goldfish” but gray", "look", False, 0.2, 0.0, 0.001), members((100, 140)), "gray", of_kind="k9"
)
LOST = Held(Finding("goldfish", "kind", False, 0.0, 0.2, 0.001, ("k9",)), members((), (100, 140)), "k9")
WITHOUT = hold(a_part("less").finding, members((), (95, 145)))
WHOLE = Finding("darker", "look", True, None, None, 0.001)

CASES = {
    "a look of the same samples names it": ([PART, hold(LOOK, members((0, 70), (0, 4)))], [1, None]),
    "a kind of the same samples names it": ([PART, hold(KIND, members((0, 70)))], [1, None]),
    "a kind that is a few of them follows": ([PART, hold(FEW, members((0, 10)))], [None, 0]),
    "a look that is a few of them is said beside it": ([PART, hold(SMALL, members((0, 10)))], [None, None]),
    "several names leave nothing of it": (
        [PART, hold(LOOK, members((0, 40))), hold(KIND, members((40, 80), (0, 10)))],
        [1, None, None],
    ),
    "a look of other samples is said beside it": ([PART, hold(LOOK, members((120, 190), (120, 124)))], [None, None]),
    "what the set lacks follows from what it has": ([LACK, PART], [1, None]),
    "what the set lacks is said alone": ([LACK], [None]),
    "a class with a look is the cause of all that its kind lacks": ([WITHOUT, LOST, GRAY], [2, 2, None]),
    "it follows from a look of all": ([PART, hold(WHOLE, members((0, N), (0, N)))], [1, None]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_part_follows_from_what_names_it(case):
    held, causes = CASES[case]
    assert follow_whole_looks(held, causes_of(held)) == causes


@pytest.mark.parametrize(
    "side, named, alone, few",
    [
        ("more", None, "with a part that hardly any reference picture has",
         "at least 20 % with a part that hardly any reference picture has"),
        ("more", "two halves that mirror each other", "with two halves that mirror each other",
         "at least 20 % with two halves that mirror each other"),
        ("less", None, "fewer with a part that hardly any generated picture has",
         "fewer with a part that hardly any generated picture has (reference at least 20.0 %)"),
    ],
)  # fmt: skip
def test_a_part_is_said_with_its_least_share(side, named, alone, few):
    finding = a_part(side, named).finding
    assert name_alone(finding) == alone
    assert short(finding) == few
    assert finding.share_cells == (("≥ 20.0", "–") if side == "more" else ("–", "≥ 20.0"))
    assert "reference 0.0 %" not in finding.say("reference")
    assert finding.words == f"{'pictures' if side == 'more' else 'fewer pictures'} with {finding.name}"


def edges(rng, n):
    """Pictures of random squares on gray."""
    return np.kron(rng.integers(0, 255, (n, 8, 8, 3), dtype=np.uint8), np.ones((1, 3, 3, 1), np.uint8))


@pytest.fixture(scope="module")
def mirrored():
    """Two sets of pictures, compared: in a fifth of the first set, both halves mirror each other."""
    rng, sets = np.random.default_rng(0), []
    for planted in (16, 0):
        images = edges(rng, 80)
        images[:planted, :, 12:] = images[:planted, :, 11::-1]
        sets.append(fe.EmbeddingSet(rng.normal(size=(80, 6)).astype(np.float32), images=[*images]))
    return fe.compare(*sets, features=20, modes=1)


def test_mirrored_halves_are_found_with_their_pictures(mirrored, tmp_path):
    (part,) = (part for part in mirrored.parts if part.side == "more")
    assert (part.kind, part.name) == ("likeness", "two halves that mirror each other")
    assert mirrored.local_p_value <= part.p_value <= 0.05
    assert {int(name) for name in part.samples[:12]} <= {*range(16)}
    assert 0.05 < part.at_least <= 0.2
    (finding,) = (finding for finding in mirrored.findings if finding.kind == "part")
    said = f"At least {int(100 * part.at_least)} % of the generated pictures have two halves that mirror each other."
    assert finding.text == said
    assert said in mirrored.headline
    mirrored.save(tmp_path / "comparison.h5")
    assert fe.load(tmp_path / "comparison.h5").parts == mirrored.parts


def test_a_page_shows_the_surest_pictures_first(mirrored, tmp_path):
    page = mirrored.to_html(tmp_path / "page.html").read_text()
    assert "at least" in page.split("two halves that mirror each other")[2][:400]


QUICK = {"features": 20, "modes": 1}
LOCAL = "local"  # key of the sentence that nothing local was looked at


def arrays(seed=0):
    return np.random.default_rng(seed).normal(size=(2, 60, 4)).astype(np.float32)


def sketched(seed=0):
    gen, ref = arrays(seed)
    return fe.Sketch.of(gen, fe.Sketch.reference(ref, features=20).feature_map), ref


UNLOOKED = {  # two sets of which nothing local is known, and how they are compared
    "arrays": (arrays, {}),
    "arrays of the same ids": (arrays, {"pairs": "id"}),
    "a sketch and an array": (sketched, {}),
}


@pytest.mark.parametrize("case", UNLOOKED)
def test_sets_without_pictures_say_that_nothing_local_was_looked_at(case):
    sets, how = UNLOOKED[case]
    found = fe.compare(*sets(), **QUICK, **how)
    assert (found.local_p_value, found.parts) == (None, ())
    assert [key for key in details(found) if key == LOCAL] == [LOCAL] and details(found)[LOCAL] in found.to_markdown()


@pytest.mark.parametrize("planted", [0, 20])
def test_two_runs_of_the_same_ids_show_the_parts_of_two_sets(planted):
    sets = {
        is_paired: [
            celled(seed, planted=count, like=9 if is_paired else None) for seed, count in ((1, planted), (2, 0))
        ]
        for is_paired in (True, False)
    }
    runs, alone = (fe.compare(*sets[is_paired], **QUICK) for is_paired in (True, False))
    assert runs.by_id is not None and alone.by_id is None
    shown = [[(part.kind, part.side) for part in found.parts] for found in (runs, alone)]
    assert shown == [[("patches", "more")] * bool(planted)] * 2
    assert [finding.kind for finding in runs.findings] == ["part"] * bool(planted)
    assert all(int(name.partition("-")[2]) < planted for part in runs.parts for name in part.samples[:12])
    assert LOCAL not in details(runs)


def test_a_part_of_broken_pairs_is_said_with_them():
    gen, old = celled(1, planted=20, like=9), celled(2, like=9)
    gen._rows[:20] += 8 * torch.arange(1, 21)[:, None]
    found = fe.compare(gen, old, **QUICK)
    assert len(found.by_id.broken) >= 15 and found.parts
    assert [finding.kind for finding in found.findings] == ["pair"]
