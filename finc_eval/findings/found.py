"""Findings of two sets: the looks, repeats and kinds in which they differ, each cause once, the largest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.words import is_nearly_all
from finc_eval.embeddings.base import Embeddings
from finc_eval.findings.causes import Held, Members, causes_of, follow_whole_looks
from finc_eval.findings.classes_with_looks import find_class_with_look
from finc_eval.findings.equal_shares import is_made_by_kinds
from finc_eval.findings.finding import Finding, What
from finc_eval.findings.names import KindNames, whole_with_others
from finc_eval.naming.columns import is_look
from finc_eval.naming.evidence import CLASSIFIER, MOST, PARTLY, TRAIT
from finc_eval.naming.looks import MOST_EXAMPLES, REPEAT, Look
from finc_eval.naming.measured import MeasuredSets, looked_rows
from finc_eval.naming.parts import Property, have
from finc_eval.naming.traits import Trait
from finc_eval.numerics.inference import ALPHA, significant
from finc_eval.partitions.kind import Kind, top_level

APART = 0.85
"""Part of the nearest half of a kind, around its members, that are members where it is a place of its own.

Measured on photographs of Tiny ImageNet: 0.94 where a class is a cluster and is lost while all are darker or blurrier,
and at most 0.72 where all are gray, flatter or solarized, and none is lost.
"""

APART_ALONE = 0.65
"""The same, where no other kinds grew by half of what a kind lost: a look takes samples of a kind to other kinds.

Measured on photographs of 12 classes: 0.69 to 0.9 where a class is lost while all are warmer, darker or paler; 0.52
where all are paler, none is lost, and embeddings are mean colors.
"""

KindsOf = Callable[[torch.Tensor], list[str]]  # ids of the kinds of rows, "" far from all kinds


def look_finding(look: Look) -> Finding:
    """Return a look as a finding."""
    what: What = "repeat" if look.trait == REPEAT else "look" if is_look(look.trait) else "column"
    ids = tuple(look.examples.get(look.more_in, ()))
    # A set that has moved on average has no share of it.
    has_shares = not look.whole or is_nearly_all(look.interval)
    own, other, interval = (look.share_gen, look.share_ref, look.interval) if has_shares else (None, None, None)
    return Finding(
        look.name, what, look.whole, own, other, look.p_value, look.kinds, ids=ids, explains=look.kinds,
        share_interval=interval, trait=look.trait, spread=look.spread,
    )  # fmt: skip


def kind_finding(kind: Kind, names: KindNames) -> Finding:
    """Return a kind, or a heading of kinds, as a finding."""
    parts = kind.children or (kind.id,)
    more_in = "gen" if kind.share_difference > 0 else "ref"
    return Finding(
        names.noun(kind), "kind", False, kind.share_gen, kind.share_ref, kind.p_value, parts,
        ids=kind.shares[more_in].top_ids, interval=kind.share_difference_interval,
    )  # fmt: skip


def find_differences(
    looks: Sequence[Look], kinds: Sequence[Kind], headings: Sequence[Kind] = ()
) -> tuple[Finding, ...]:
    """Return the looks, repeats and kinds in which two sets differ, the largest first, without their samples.

    What a look explains is what it says itself (`Look.kinds`). A look of the whole set explains all kinds. Where looks
    explain a kind under a heading, what is left are the other kinds under it.
    """
    names, covered = KindNames((*headings, *kinds)), {id for look in looks for id in look.kinds}
    left = [kind for kind in kinds if kind.id not in covered]
    heads = [heading for heading in headings if covered.isdisjoint(heading.children)]
    found = [*map(look_finding, looks)]
    whole = next((place for place, look in enumerate(looks) if look.whole), None)
    if whole is not None:
        found[whole] = replace(found[whole], explains=tuple(kind.id for kind in significant(kinds, ALPHA)))
        left, heads = [], []
    return in_order([*found, *(kind_finding(kind, names) for kind in top_level(left, heads))])


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings in the order in which they are said: the largest first."""
    return tuple(sorted(findings, key=lambda finding: -finding.size))


def hold_findings(
    sets: Mapping[str, Embeddings],
    looks: Sequence[tuple[Look, Members]],
    kinds: Sequence[Kind],
    headings: Sequence[Kind],
    kinds_of: KindsOf | None,
    measured: MeasuredSets = ((), {}),
    others: Sequence[Held] = (),
) -> list[Held]:
    """Return the causes among the looks, repeats, kinds and other findings of two sets, with the samples of each.

    What follows from a cause stands in its `explains`.

    Args:
        sets: embeddings, "gen" and "ref".
        looks: looks, with the samples of `looked_rows` that have them.
        kinds: all kinds.
        headings: unions of kinds that differ alike.
        kinds_of: function that returns the ids of the kinds of rows; None without kinds.
        measured: traits that the looks are of, and the values of the samples of `looked_rows`.
        others: findings of other things, such as words of prompts, with their samples.
    """
    rows = {label: looked_rows(samples) for label, samples in sets.items()}
    of_each = (
        {}
        if kinds_of is None or not significant(kinds, ALPHA)
        else {label: np.array(kinds_of(samples.rows_at(rows[label]))) for label, samples in sets.items()}
    )
    names, named = KindNames((*headings, *kinds)), {trait.name: trait for trait in measured[0]}
    first = [*others, *(_hold_look(look, has, rows, named) for look, has in looks)]
    each = {kind.id: _hold_kind(kind, names, kinds, sets, rows, of_each) for kind in significant(kinds, ALPHA)}
    alone = causes_of([*first, *each.values()], among_kinds=False)
    covered = {id for id, cause in zip(each, alone[len(first) :], strict=True) if cause is not None}
    # Where looks explain only some kinds of a heading, its kinds are said one by one.
    heads = [heading for heading in headings if len(covered & {*heading.children}) in (0, len(heading.children))]
    units = [
        each.get(kind.id) or _hold_kind(kind, names, kinds, sets, rows, of_each) for kind in top_level(kinds, heads)
    ]
    if kinds_of is not None and of_each and any(look.finding.is_of_all for look in first):
        embedded = {label: sets[label].rows_at(rows[label]) for label in rows}
        first = [_made_by_kinds(found, units, of_each, measured) for found in first]
        units = _under_look(units, embedded, kinds_of, of_each)
    known = {kind.id: kind for kind in kinds}
    looked = [find_class_with_look(unit, known[unit.key], sets, rows, measured) for unit in units if unit.key in known]
    return explained([*first, *(each for each in looked if each is not None), *units])


def explained(held: Sequence[Held]) -> list[Held]:
    """Return the findings that are causes, the largest first, each with what follows from it."""
    cause = follow_whole_looks(held, causes_of(held))
    causes = []
    for place, candidate in enumerate(held):
        if cause[place] is None:
            brought = [other for other, own in zip(held, cause, strict=True) if own == place]
            keys = tuple(key for other in brought for key in (other.finding.parts or (other.key,)))
            known = [each.finding.p_value for each in (candidate, *brought) if each.finding.p_value is not None]
            finding = replace(candidate.finding, explains=keys, p_value=min(known, default=None))
            causes.append(replace(candidate, finding=finding))
    return sorted(causes, key=lambda said: -said.finding.size)


def _made_by_kinds(
    look: Held, units: Sequence[Held], of_each: Mapping[str, NDArray[np.str_]], measured: MeasuredSets
) -> Held:
    """Return a look of all with the largest of the kinds whose shares make it; other findings as they are."""
    if not (look.finding.is_of_all and look.trait is not None and units):
        return look
    traits, of_sets = measured
    place = traits.index(look.trait)
    values = {label: of_set.values[:, place].astype(float) for label, of_set in of_sets.items()}
    largest = max(units, key=lambda unit: unit.finding.size)
    return replace(look, made_by=largest.key) if is_made_by_kinds(values, of_each) else look


def _under_look(
    units: Sequence[Held],
    embedded: Mapping[str, torch.Tensor],
    kinds_of: KindsOf,
    of_each: Mapping[str, NDArray[np.str_]],
) -> list[Held]:
    """Return kinds with the samples that would be of them if the generated set had the look of the reference.

    A look of all moves samples of all kinds alike: it moves the embeddings, and changes how far they spread. So the
    generated set gets the means and the spreads of the reference.
    """
    gen, ref = (embedded[label].double() for label in ("gen", "ref"))
    spread = gen.std(0)
    scale = torch.where(spread > 0, ref.std(0) / spread.clamp_min(1e-12), 1.0)
    moved = ((gen - gen.mean(0)) * scale + ref.mean(0)).to(embedded["gen"].dtype)
    ids = {"gen": np.array(kinds_of(moved)), "ref": of_each["ref"]}
    near = torch.cdist(ref, ref).fill_diagonal_(torch.inf).cpu()
    masks = [{label: np.isin(each, unit.finding.parts) for label, each in ids.items()} for unit in units]
    gains = [float(mask["gen"].mean() - mask["ref"].mean()) for mask in masks]
    grown = sum(gain for gain in gains if gain > 0)
    found = []
    for unit, mask, gain in zip(units, masks, gains, strict=True):
        least = APART if grown > -MOST * gain else APART_ALONE
        is_apart = _apartness(near, torch.from_numpy(unit.members["ref"])) >= least
        found.append(replace(unit, without_look=mask) if is_apart else unit)
    return found


def _apartness(distances: torch.Tensor, members: torch.Tensor) -> float:
    """Return the part of the nearest half of the members, around each member, that are members.

    A kind of what a look took away, such as colorful pictures, passes gradually into others. A kind of most samples is
    no place among others: 0.
    """
    nearest = int(members.sum()) // 2
    if nearest == 0 or members.double().mean() > MOST:
        return 0.0
    around = distances[members].topk(nearest, largest=False).indices
    return float(members[around].double().mean())


def _hold_look(look: Look, has: Members, rows: Mapping[str, NDArray[np.int64]], traits: Mapping[str, Trait]) -> Held:
    members = {label: np.ones(len(each), bool) for label, each in rows.items()} if look.whole else has
    finding = replace(look_finding(look), parts=(), explains=())
    return Held(finding, members, look.name, traits.get(look.trait), None, look.examples)


def _hold_kind(
    kind: Kind,
    names: KindNames,
    kinds: Sequence[Kind],
    sets: Mapping[str, Embeddings],
    rows: Mapping[str, NDArray[np.int64]],
    of_each: Mapping[str, NDArray[np.str_]],
) -> Held:
    finding = kind_finding(kind, names)
    members = {label: np.isin(each, finding.parts) for label, each in of_each.items()}
    examples = {label: sets[label].ids_at(rows[label][has][:MOST_EXAMPLES]) for label, has in members.items()}
    inside = [part for part in kinds if part.id in finding.parts]
    said = [asked for part in inside for asked in _said_by(part)]
    asked = None
    if said and all(each.source in samples.columns for each in said for samples in sets.values()):
        asked = {label: np.asarray(have(samples, rows[label], said).any(1)) for label, samples in sets.items()}
    others = None
    if whole_with_others(kind) is not None and (known := _named_by(kind)):
        others = {label: np.asarray(have(samples, rows[label], known).any(1)) for label, samples in sets.items()}
        others = {label: mask & ~members[label] for label, mask in others.items()}
    return Held(finding, members, kind.id, None, asked, examples, others=others)


def _named_by(kind: Kind) -> list[Property]:
    """Return the values of columns, classes and nouns that name a kind."""
    said = [Property(part.source, part.value) for part in kind.evidence if part.in_name and part.source != TRAIT]
    return [known for known in said if kind.part_of is not None and known.words == kind.part_of.name] or said


def _said_by(kind: Kind) -> list[Property]:
    """Return the values of columns and the words of prompts that name most of a kind."""
    if kind.name is None or kind.name.startswith(PARTLY):
        return []
    said = [part for part in kind.evidence if part.in_name and part.source not in (TRAIT, CLASSIFIER)]
    return [Property(part.source, part.value) for part in said]
