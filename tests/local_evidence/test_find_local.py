"""The test of local evidence finds what is planted, says where and how much, and nothing in equal sets."""

import numpy as np
import pytest
from _planted_cells import WINDOW, cells, embedded, likeness, pictures

from finc_eval import UsageError
from finc_eval.local_evidence.find import find_local
from finc_eval.local_evidence.inputs import LocalInput


def found(gen, ref, seed=0):
    return find_local(gen, ref, seed=seed, permutations=99)


@pytest.mark.parametrize("side", ["more", "less"])
def test_a_planted_patch_is_found_with_its_share_pictures_and_place(side):
    rng = np.random.default_rng(0)
    sets = [pictures(rng, 160, planted=32), pictures(rng, 140)]
    evidence = found(*(sets if side == "more" else sets[::-1]))
    (part,) = evidence.parts
    assert (evidence.p_value, part.kind, part.side, part.name) == (0.01, "patches", side, None)
    assert 0.05 < part.at_least < 0.2 < part.share + 0.05 < 0.3
    assert set(part.samples[:12]) <= set(range(32)) and len(part.others) == 2
    assert [int(np.argmax(heat)) for heat in part.heat] == [WINDOW] * 12


def test_a_fault_at_one_place_of_clips_is_found_by_the_three_grids_of_their_time():
    rng = np.random.default_rng(8)
    gen, ref = ([cells(rng, 100, planted) for _ in range(3)] for planted in (20, 0))
    evidence = found(*[LocalInput(cells=np.concatenate(grids, 1)) for grids in (gen, ref)])
    (part,) = evidence.parts
    assert (evidence.p_value, part.kind, part.side) == (0.01, "patches", "more")
    assert set(part.samples[:12]) <= set(range(20)) and 0.05 < part.at_least < 0.2
    assert [np.shape(heat) for heat in part.heat] == [(4, 4)] * 12
    assert [int(np.argmax(heat)) for heat in part.heat] == [WINDOW] * 12


def test_a_change_of_all_has_no_share():
    rng = np.random.default_rng(1)
    gen = cells(rng, 80).astype(int)
    evidence = found(LocalInput(cells=(gen + 15).clip(-127, 127).astype(np.int8)), pictures(rng, 80))
    (part,) = evidence.parts
    assert (part.name, part.share, part.at_least) == ("on average", None, None)
    assert part.p_value <= 0.05 and len(part.samples) == len(part.heat) == 12


def test_likeness_copies_and_repeats_are_named():
    rng = np.random.default_rng(2)
    ref = embedded(rng, 60)
    sets = {
        "two halves that mirror each other": (likeness(rng, 60, 15), embedded(rng, 60)),
        "nearly copy the reference": (likeness(rng, 60), embedded(rng, 60, ref[:15])),
        "nearly repeat each other": (likeness(rng, 60), embedded(rng, 60, (ref[:3] + 1).repeat(5, 0))),
    }
    of_ref = LocalInput(likeness=likeness(rng, 60), embeddings=ref)
    for name, (of_gen, rows) in sets.items():
        evidence = found(LocalInput(likeness=of_gen, embeddings=rows), of_ref)
        part = next(part for part in evidence.parts if part.name == name)
        assert part.p_value <= 0.02 and 0 < part.at_least <= 0.25
        assert set(range(15)) <= set(part.samples)


def test_pictures_upside_down_are_found_by_a_second_pass():
    rng = np.random.default_rng(3)
    up, rows = rng.normal(size=16), [embedded(rng, 60) for _ in range(2)]
    both = [np.stack([each, each - 2 * up]).astype(np.float32) for each in rows]
    both[0][:, :15] = both[0][::-1, :15].copy()
    evidence = found(*[LocalInput(embeddings=each[0], flipped=each[1]) for each in both])
    part = next(part for part in evidence.parts if part.kind == "orientation")
    assert sorted(part.samples) == [*range(15)] and 0.1 < part.at_least < 0.25


@pytest.mark.parametrize("planted", [0, 15, 30])
def test_pictures_upside_down_are_looked_for_in_further_sets(planted):
    rng = np.random.default_rng(3)
    up, given = rng.normal(size=16), []
    for count in (15, 0, planted):
        rows = embedded(rng, 60)
        both = np.stack([rows, rows - 2 * up]).astype(np.float32)
        both[:, :count] = both[::-1, :count].copy()
        given.append(LocalInput(embeddings=both[0], flipped=both[1]))
    given[2].flipped[50:] = np.nan  # pictures that were not turned
    evidence = find_local(*given[:2], permutations=99, others=given[2:])
    part = next(part for part in evidence.parts if part.kind == "orientation")
    assert part.elsewhere == (tuple(range(planted)),) and given[2].turned == 50


def test_equal_sets_have_no_parts():
    rng = np.random.default_rng(4)
    evidence = found(*[pictures(rng, 80, likeness=likeness(rng, 80), embeddings=embedded(rng, 80)) for _ in range(2)])
    assert evidence.p_value > 0.05 and evidence.parts == ()
    assert evidence.looked_at == ("cells", "likeness", "embeddings")


def test_the_order_of_samples_does_not_matter():
    rng = np.random.default_rng(5)
    values, ref, units = cells(rng, 100, planted=20), pictures(rng, 60), np.arange(100)
    order = rng.permutation(100)
    first = found(LocalInput(cells=values, units=units), ref)
    second = found(LocalInput(cells=values[order], units=units[order]), ref)
    assert first.p_value == second.p_value
    assert first.parts[0].samples == tuple(order[list(second.parts[0].samples)].tolist())


def test_few_samples_and_sets_without_the_same_arrays_are_not_tested():
    rng = np.random.default_rng(6)
    assert found(pictures(rng, 19), pictures(rng, 60)) is None
    assert found(pictures(rng, 40, units=np.arange(40) // 4), pictures(rng, 60)) is None
    assert found(pictures(rng, 40), LocalInput(likeness=likeness(rng, 40))) is None


def test_wrong_arrays_are_refused():
    rng = np.random.default_rng(7)
    wrong = [
        (pictures(rng, 30, blocks=np.arange(30)), pictures(rng, 30), "only one of the sets has blocks"),
        (pictures(rng, 30), LocalInput(cells=cells(rng, 30, channels=9)), "make both in the same way"),
        (*[LocalInput(cells=cells(rng, 30)[:, :15])] * 2, "windows of one or three square grids"),
    ]
    for gen, ref, words in wrong:
        with pytest.raises(UsageError, match=words):
            found(gen, ref)
    with pytest.raises(UsageError, match="align them"):
        pictures(rng, 30, units=np.arange(29))
    with pytest.raises(UsageError, match="needs cells"):
        LocalInput()


@pytest.mark.parametrize(("planted", "expected"), [(0, 0.0), (40, 0.5), (80, 1.0)])
def test_a_part_is_looked_for_in_further_sets(planted, expected):
    rng = np.random.default_rng(7)
    gen, ref = pictures(rng, 160, planted=32), pictures(rng, 140)
    others = [pictures(rng, 80, planted=planted), LocalInput(likeness=likeness(rng, 80))]
    part = find_local(gen, ref, permutations=99, others=others).parts[0]
    found, unknown = part.elsewhere
    assert unknown is None and abs(len(found) / 80 - expected) < 0.25


def test_mirrored_pictures_are_looked_for_in_further_sets():
    rng = np.random.default_rng(8)
    gen, ref, other = (LocalInput(likeness=likeness(rng, 60, planted)) for planted in (15, 0, 30))
    part = next(part for part in find_local(gen, ref, permutations=99, others=[other]).parts if part.side == "more")
    assert part.elsewhere == (tuple(range(30)),)
