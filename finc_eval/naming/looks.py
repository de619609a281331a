"""Looks of whole sets: what every eye sees first, such as gray, blurred or dark pictures, with a test of all looks.

Each picture is measured; a set is described by the means of these traits, and by the shares of samples in the tails of
both sets together. All columns are one family: a p-value is the part of exchanges of the sets whose largest |z| over
all columns is as large (Westfall and Young 1993).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.record import Record
from finc_eval.core.words import percent_of, say_part, say_repeated, say_whole
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.repeats import REPEATS
from finc_eval.estimates.part import Interval
from finc_eval.naming.explained import STRONG, Explained, Has, explain, name_by_members, name_cause
from finc_eval.naming.measured import (
    LookColumn,
    Measured,
    MeasuredSets,
    Sampled,
    TraitSpread,
    columns_of,
    exchange_columns,
    looked_rows,
    measure_sets,
)
from finc_eval.naming.repeated import (
    REPEATED,
    PairedRows,
    Repeats,
    digests_of,
    is_of_motion,
    known_pixels,
    pair_rows,
    pixels_of,
)
from finc_eval.naming.share_repeated import AllRepeats, p_of_all_repeats, shares_of_repeats, size_of
from finc_eval.naming.texture import Array
from finc_eval.naming.traits import Trait
from finc_eval.numerics.exchanges import unit_numbers
from finc_eval.numerics.families import level_of_each, step_down
from finc_eval.numerics.inference import BESIDE_ALPHA

EXAMPLES, MOST_EXAMPLES = 8, 200  # samples that show a finding, and that a result keeps of those that have a look

ORDINARY = 0.05
"""Share of a set that has near pairs above which near pairs of the other set are not called repeats.
Near pairs within .55 are 0 of 600 photographs, and a quarter of 150 points of two dimensions."""

NEAR_REPEATED = 0.02
"""Share of a set from which near repeats are worth a word: of blurred digits, three of 300 were as near by chance."""

REPEAT = "repeat"  # trait of the pictures that a set repeats


@dataclass(frozen=True)
class Look(Record):
    """A look that pictures of one set have more often than pictures of the other.

    Attributes:
        name: what they look like, such as "blurred"; of a whole set, a comparative such as "darker".
        whole: whether the whole set has moved, rather than a part of it.
        more_in: label of the set that has more of it.
        share_gen: share of the generated samples that look so; of a whole set, beyond the middle of both sets.
        share_ref: share of the reference samples that look so. The share of the set that has more is an estimate of
            the part that has moved; of the other set, those are counted that clearly look so.
        p_value: p-value of "both sets look alike", adjusted for all looks.
        middle_gen: median of the trait in the generated set.
        middle_ref: median of the trait in the reference set.
        examples: ids of samples, by set: the clearest of the set that has more, and typical ones of the other set.
        kinds: ids of the kinds that it explains: without its samples, the sets hardly differ in them.
        interval: interval of the share of the set `more_in`; None for repeats that are counted, and earlier looks.
        spread: how the trait is spread in both sets; None for repeats, and for looks of earlier versions.
    """

    name: str
    whole: bool
    more_in: str
    share_gen: float
    share_ref: float
    p_value: float
    trait: str
    middle_gen: float
    middle_ref: float
    examples: dict[str, tuple[str, ...]]
    kinds: tuple[str, ...] = ()
    interval: Interval | None = None
    spread: TraitSpread | None = None

    def samples_with_it(self, label: str) -> tuple[str, ...]:
        """Return the ids of kept samples of a set that have it; the other set's are typical ones, without it."""
        return self.examples[label] if label == self.more_in else ()

    @property
    def sentence(self) -> str:
        """Say it with the shares of both sets."""
        if self.whole:
            said = say_whole(self.name, self.interval, "the generated set")
            return f"{said[0].upper()}{said[1:]}."
        shares = {"gen": (self.share_gen, self.share_ref), "ref": (self.share_ref, self.share_gen)}
        own, other = (
            percent_of(share, self.interval if label == self.more_in else None, beyond=others)
            for label, (share, others) in shares.items()
        )
        return f"{say_part(self.name, own, other, is_more=self.more_in == 'gen')}."


def find_looks(
    sets: Mapping[str, Embeddings],
    seed: int,
    blocks: Mapping[str, NDArray[np.int64]] | None = None,
    known: Callable[[], MeasuredSets] | None = None,
) -> tuple[Look, ...]:
    """Return the looks that two sets, "gen" and "ref", have significantly more or less of, the clearest first.

    A look that the samples of another look explain is left out: gray pictures are pale, too.

    Args:
        sets: embeddings, by label; without pictures, only repeats are found.
        seed: random seed of the exchanges.
        blocks: block of each sample of paired sets, such as its prompt, by label; exchanges keep to blocks.
        known: function that returns measurements of these sets; default: the pictures are measured.
    """
    return tuple(look for look, _ in look_at(sets, seed, blocks, known and known()))


def look_at(
    sets: Mapping[str, Embeddings],
    seed: int,
    blocks: Mapping[str, NDArray[np.int64]] | None = None,
    known: MeasuredSets | None = None,
    exchanges: int = 999,
) -> list[tuple[Look, Has]]:
    """Return the looks of `find_looks`, and which of the samples of `looked_rows` have each of them.

    `known` has measurements of these sets, where they are at hand; default: the pictures are measured. No p-value is
    smaller than that of all `exchanges`.
    """
    rows = {label: looked_rows(one) for label, one in sets.items()}
    found = _find_repeats(sets, rows, seed, blocks, exchanges)
    traits, measured = known or measure_sets(sets)
    return find_traits(sets, traits, measured, found, seed, blocks, exchanges) if measured else found


def find_traits(
    sets: Mapping[str, Sampled],
    traits: Sequence[Trait],
    measured: Mapping[str, Measured],
    repeats: Sequence[tuple[Look, Has]],
    seed: int,
    blocks: Mapping[str, NDArray[np.int64]] | None,
    exchanges: int,
) -> list[tuple[Look, Has]]:
    """Return the repeats, and the looks by traits of samples that are not repeats, with the samples of each."""
    table, columns = columns_of(traits, measured)
    rows = {label: one.rows for label, one in measured.items()}
    exchanged = exchange_columns(table, sets, rows, seed, blocks, exchanges)
    z = np.zeros((1, 0)) if exchanged is None else exchanged.z
    p_values = step_down(z[0], z[1:].astype(np.float32)) if z.size else np.empty(0)
    order = [int(index) for index in np.argsort(-np.abs(z[0]), kind="stable") if p_values[index] <= BESIDE_ALPHA]
    critical = float(np.quantile(np.abs(z[1:]).max(1), 1 - BESIDE_ALPHA)) if order else 0.0
    found = [*repeats]
    left = {label: np.ones(len(one.rows), bool) for label, one in measured.items()}
    for _, has in found:
        left = {label: mask & ~has[label] for label, mask in left.items()}
    known: set[str] = set()
    brought: set[str] = set()
    while order:
        of_rest = np.abs(_of_rest(order, left, table, sets, rows, seed, blocks))
        is_brought = np.array([columns[index].trait.name in brought for index in order])
        stays = of_rest >= np.maximum(critical, STRONG * np.abs(z[0, order]) * is_brought)
        # What a user registered is said, whatever explains it.
        stays |= np.array([columns[index].trait.is_asked for index in order])
        explained = [_explain(columns, index, z[0], measured) for index in np.array(order)[stays].tolist()]
        fresh = [one for one in explained if one.name is not None and one.trait.name not in known]
        if not fresh:
            break
        clearest = name_cause(fresh, [trait.name for trait in traits])
        cause = name_by_members(clearest, traits, {label: each.values for label, each in measured.items()})
        p_value = min(float(p_values[place]) for place, each in enumerate(columns) if each.trait is clearest.trait)
        found.append((_look_of(cause, columns, p_value, sets, measured), cause.has))
        known |= {clearest.trait.name, cause.trait.name, *cause.trait.sort_of, *(cause.trait.brings * cause.whole)}
        known |= {one.trait.name for one in fresh if cause.ends(one)}
        brought |= {*cause.trait.brings}
        left = {label: mask & ~cause.has[label] for label, mask in left.items()}
    return found


def _find_repeats(
    sets: Mapping[str, Embeddings],
    rows: Mapping[str, NDArray[np.int64]],
    seed: int,
    blocks: Mapping[str, NDArray[np.int64]] | None,
    exchanges: int,
) -> list[tuple[Look, Has]]:
    """Return, for each set, the look of samples that it repeats more often than the other set.

    All large repeats are one family, and the share of samples that are repeats at all is another: many pictures may
    come twice each. Without these, near pairs inside a set are a third: a class may come from a few pictures, moved
    slightly. All are tested by exchanges, and share their level. Groups that are repeats themselves are taken apart:
    their samples are what is counted. Clips that move alike, such as still clips, are repeats only if their frames are
    equal.
    """
    if any(map(is_of_motion, sets.values())) and known_pixels(sets) is None:
        return []
    repeats = Repeats.among(sets, rows)
    apart = {label: one.with_groups(None, None) if one.grouping == REPEATS else one for label, one in sets.items()}
    large, p_values = _test_large(repeats, apart, rows, seed, blocks, exchanges)
    level = level_of_each(BESIDE_ALPHA, 3)  # of all families
    found = []
    for label, side in (("gen", 1), ("ref", -1)):
        often = large[(np.abs(p_values) <= level) & (np.sign(p_values) == side)]
        p_value = float(np.abs(p_values[np.isin(large, often)]).min(initial=1.0))
        of_all, counted = _test_all(repeats, label, often, apart, rows, seed, blocks, exchanges)
        if of_all <= level and counted is not None:
            found.append(_say_counted(counted, label, of_all, sets, rows))
            often = often[:0] if counted.interval is None else often  # a sketch may not have counted the large repeats
        elif of_all <= level:
            often = np.union1d(often, repeats.added(label, "ref" if label == "gen" else "gen"))
            p_value = min(p_value, of_all)
        if len(often):
            found.append(_say_repeats(repeats, often, label, p_value, sets, rows))
    return found or _find_near_repeats(
        pair_rows(apart, rows, blocks, seed=seed, exchanges=exchanges), level, sets, rows
    )


def _test_all(
    repeats: Repeats,
    label: str,
    often: NDArray[np.int64],
    sets: Mapping[str, Embeddings],
    rows: Mapping[str, NDArray[np.int64]],
    seed: int,
    blocks: Mapping[str, NDArray[np.int64]] | None,
    exchanges: int,
) -> tuple[float, AllRepeats | None]:
    """Return the p-value of the share of samples that a set repeats at all, and its repeats among all samples.

    The p-value is 1 if the large repeats `often` are most of them. Repeats of sets in groups or blocks, and near
    repeats, are known among the samples looked at alone: None.
    """
    other = "ref" if label == "gen" else "gen"
    has = repeats.has(often)
    said, of_set = has[label].mean(), repeats.has(repeats.added(label, other))[label].mean()
    counted = None
    if blocks is None:
        digests = digests_of(sets)
        large = np.concatenate([digests[name][looked[has[name]]] for name, looked in rows.items()])
        counted = AllRepeats.among(sets, label, large, (said, has[other].mean()))
    # If some values alone are counted, the large repeats are not among these, and are said as well.
    apart = 0.0 if counted is None or counted.interval is None else said
    if counted is not None and counted.share >= max(REPEATED, of_set - apart, 2 * said - apart):
        return 2 * counted.p_value(seed, exchanges), counted  # 2: of either set
    if of_set >= REPEATED and said <= of_set / 2:
        return 2 * p_of_all_repeats(repeats.numbers, label, sets, rows, seed, blocks, exchanges), None
    return 1.0, None


def _find_near_repeats(
    near: PairedRows | None, level: float, sets: Mapping[str, Embeddings], rows: Mapping[str, NDArray[np.int64]]
) -> list[tuple[Look, Has]]:
    """Return, for each set, the look of the near repeats that it has more of than the other set."""
    found = []
    for label, other in (("gen", "ref"), ("ref", "gen")):
        if near is None or (p_value := 2 * near.pairs.repeats_p[label == "ref"]) > level:
            continue
        if near.repeats(label, with_dense=True).is_again(other).mean() > ORDINARY:
            continue
        repeats = near.repeats(label)
        often = repeats.added(label, other)
        if repeats.has(often)[label].mean() >= NEAR_REPEATED:
            found.append(_say_repeats(repeats, often, label, p_value, sets, rows))
    return found


def _say_repeats(
    repeats: Repeats,
    chosen: NDArray[np.int64],
    label: str,
    p_value: float,
    sets: Mapping[str, Embeddings],
    rows: Mapping[str, NDArray[np.int64]],
) -> tuple[Look, Has]:
    """Describe repeats of a set, given by their numbers, as a look, with the samples of both sets that are these."""
    has = repeats.has(chosen)
    shares, is_counted = shares_of_repeats(sets, rows, has, bool((repeats.unlike[chosen] > 1).any()))
    are_pictures = pixels_of(sets[label]) is not None and not is_of_motion(sets[label])
    times = round(shares[label] * size_of(sets[label]))
    name = repeats.say(chosen, times, are_pictures=are_pictures, is_counted=is_counted)
    return _of_repeats(name, label, p_value, has, shares, sets, rows), has


def _say_counted(
    counted: AllRepeats,
    label: str,
    p_value: float,
    sets: Mapping[str, Embeddings],
    rows: Mapping[str, NDArray[np.int64]],
) -> tuple[Look, Has]:
    """Describe the repeats of a set among all its samples as a look, with the samples looked at that are these."""
    digests = digests_of(sets)
    has = {name: np.isin(digests[name][looked], counted.values) for name, looked in rows.items()}
    shares = {name: counted.share if name == label else counted.share_other for name in sets}
    said = say_repeated(
        counted.distinct,
        round(counted.share * size_of(sets[label])),
        are_pictures=pixels_of(sets[label]) is not None and not is_of_motion(sets[label]),
        is_counted=counted.interval is None,
    )
    look = _of_repeats(said, label, p_value, has, shares, sets, rows)
    return replace(look, interval=counted.interval), has


def _test_large(
    repeats: Repeats,
    sets: Mapping[str, Embeddings],
    rows: Mapping[str, NDArray[np.int64]],
    seed: int,
    blocks: Mapping[str, NDArray[np.int64]] | None,
    exchanges: int,
) -> tuple[NDArray[np.int64], Array]:
    """Return the large repeats, and the p-value of each, (k,), below 0 where the reference has more of it."""
    kept = np.flatnonzero(np.any([*repeats.large.values()], axis=0))
    table = {label: (one[:, None] == kept).astype(float) for label, one in repeats.numbers.items()}
    exchanged = exchange_columns(table, sets, rows, seed, blocks, exchanges) if len(kept) else None
    if exchanged is None:
        return kept[:0], np.empty(0)
    z = exchanged.z
    return kept, np.asarray(step_down(z[0], z[1:].astype(np.float32)) * np.sign(z[0]))


def _of_repeats(
    name: str,
    label: str,
    p_value: float,
    has: Has,
    shares: Mapping[str, float],
    sets: Mapping[str, Embeddings],
    rows: Mapping[str, NDArray[np.int64]],
) -> Look:
    """Describe the samples that a set repeats as a look."""
    shown = {one: sets[one].ids_at(rows[one][each][:MOST_EXAMPLES]) for one, each in has.items()}
    # The trait is whether a sample is repeated: its median says whether most samples are.
    middle = {one: float(share > 0.5) for one, share in shares.items()}
    return Look(name, False, label, shares["gen"], shares["ref"], p_value, REPEAT, middle["gen"], middle["ref"], shown)


def _of_rest(
    chosen: Sequence[int],
    left: Has,
    table: Mapping[str, Array],
    sets: Mapping[str, Sampled],
    rows: Mapping[str, NDArray[np.int64]],
    seed: int,
    blocks: Mapping[str, NDArray[np.int64]] | None,
) -> Array:
    """Return z of some columns among the samples that no look explains yet."""
    values = {label: table[label][mask][:, chosen] for label, mask in left.items()}
    rest = {label: rows[label][mask] for label, mask in left.items()}
    found = exchange_columns(values, sets, rest, seed, blocks, 0)
    return np.zeros(len(chosen)) if found is None else found.z[0]


def _explain(columns: Sequence[LookColumn], index: int, z: Array, measured: Mapping[str, Measured]) -> Explained:
    column = columns[index]
    tails = (abs(z[other]) for other, one in enumerate(columns) if one.trait is column.trait and one.tail)
    values = {label: one.values[:, column.place] for label, one in measured.items()}
    return explain(column.trait, column.tail, float(z[index]), max(tails, default=0.0), values)


def _look_of(
    one: Explained,
    columns: Sequence[LookColumn],
    p_value: float,
    sets: Mapping[str, Sampled],
    measured: Mapping[str, Measured],
) -> Look:
    """Describe a look with its shares and with samples: the clearest of a set, and typical ones of the other."""
    place = next(column.place for column in columns if column.trait is one.trait)
    values_of = {label: each.values[:, place] for label, each in measured.items()}
    middle = {label: float(np.median(values)) for label, values in values_of.items()}
    shown = {}
    for label, values in one.order.items():
        clear = -values if label == one.more_in else np.abs(values - np.median(values))
        # Equal ones in a random order: the first of a folder are of one class.
        order = np.lexsort([np.random.default_rng(0).permutation(len(clear)), clear])
        count = max(EXAMPLES, min(MOST_EXAMPLES, int(one.has[label].sum()))) if label == one.more_in else EXAMPLES
        shown[label] = sets[label].ids_at(measured[label].rows[order[:count]])
    units = {label: unit_numbers(sets[label].unit_keys()[each.rows]) for label, each in measured.items()}
    shares, interval = one.estimate(units)
    assert one.name is not None
    known = (one.name, one.whole, one.more_in, shares["gen"], shares["ref"], p_value, one.trait.name)
    return Look(*known, middle["gen"], middle["ref"], shown, interval=interval, spread=TraitSpread.of(values_of))
