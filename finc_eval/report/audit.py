"""The page, the notebook view and the terminal tables of an audit: three questions, each with its own answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from finc_eval.core.words import counted, figure, listed, percent
from finc_eval.gallery.gallery import Gallery, read_gallery
from finc_eval.memorization.attacks import CONTROL_AUC_RANGE, Attack, AttackName
from finc_eval.memorization.copying import SUSPICIOUS_SHARE, Measure, MeasureName
from finc_eval.memorization.power import EXACT, Power
from finc_eval.memorization.result import AUDIT_ALPHA, AUDIT_CONFIDENCE, Audit, SuspiciousPair
from finc_eval.report.exports.made import call, source
from finc_eval.report.exports.outline import Outline, Table, sizes, texts_of, unreadable
from finc_eval.report.formats import p_value
from finc_eval.report.pages import NO_SAMPLES, notebook_view, render, scale
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.samples import Samples

FRAGMENT_PAIRS = 8
"""Number of suspicious pairs in a notebook."""

SHOWN_STRATUM_EXAMPLES = 6
"""Number of training samples of a stratum on a page."""

LIKELY_SEEN = 0.8
"""Probability from which on copies count as visible."""

MEASURE_NAMES: dict[MeasureName, str] = {
    "hash": "Perceptual hash",
    "views": "Views of suspects",
    "calibrated": "Calibrated distance",
    "authpct": "AuthPct",
    "c_t": "C_T",
    "dcr": "DCR share",
    "nndr": "NNDR",
    "mifid": "MiFID",
    "fld_gap": "FLD gap",
}

MEASURES_EXPLAINED: dict[MeasureName, str] = {
    "hash": "the same share by perceptual hashes, whose distance is the least over mirrored, shifted and cropped views",
    "views": "the same share by embedding, for suspicious samples over mirrored, widened and shifted views",
    "calibrated": f"share of samples as near to the training set as the {SUSPICIOUS_SHARE:.0%} nearest fresh samples",
    "authpct": "percentage of samples farther from their training sample than that is from its own set",
    "c_t": "rank test of distances to the training set, by kind of the training set; far above 0 means poor samples",
    "dcr": "share of samples nearer to the training set than to the holdout",
    "nndr": "nearest over second nearest distance, median",
    "mifid": "Fréchet distance over the cosine distance to the training set; p is of that distance",
    "fld_gap": "−100 times the excess log-likelihood of training over unseen samples, around generated samples",
}

ATTACK_NAMES: dict[AttackName, str] = {
    "nearest": "Nearest neighbor",
    "ball": "Monte-Carlo ball",
    "domias": "DOMIAS",
    "kahm": "KAHM distance",
}

ATTACKS_EXPLAINED: dict[AttackName, str] = {
    "nearest": "distance to the nearest generated sample",
    "ball": "generated samples within a radius",
    "domias": "density of generated samples over that of a reference",
    "kahm": "distance to affine hulls of generated samples",
}


def measure_text(measure: Measure, value: float) -> str:
    """Return a value of a measure as text, with the digits that the measure needs."""
    if measure.name in ("dcr", "calibrated", "hash", "views"):
        return percent(value, 1)
    large = abs(value) >= 100
    digits = ".2f" if measure.name == "c_t" else ".1f" if measure.name == "authpct" or large else ".3g"
    return figure(value, digits)


MEASURE_COLUMNS: dict[str, Callable[[Measure], str]] = {
    "Generated": lambda measure: measure_text(measure, measure.value),
    "Interval": lambda measure: f"[{', '.join(measure_text(measure, end) for end in measure.interval)}]",
    "Fresh": lambda measure: measure_text(measure, measure.control),
    "Copies": lambda measure: "lower it" if measure.copies_lower else "raise it",
    "Adj. p": lambda measure: p_value(measure.adjusted),
}
"""The columns of the table of measures, on the page, in a notebook and on the terminal."""

ATTACK_COLUMNS: dict[str, Callable[[Attack], str]] = {
    "AUC": lambda attack: f"{attack.statistics.auc:.3f}",
    "Interval": lambda attack: f"[{', '.join(f'{end:.3f}' for end in attack.statistics.auc_interval)}]",
    "Fresh": lambda attack: f"{attack.control.auc:.3f}",
    "Advantage": lambda attack: f"{attack.statistics.advantage:.3f}",
    "True positives at 1 %": lambda attack: percent(attack.statistics.at_1_percent.tpr, 1),
    "at 0.1 %": lambda attack: percent(attack.statistics.at_01_percent.tpr, 1),
    "ε at least": lambda attack: f"{attack.statistics.epsilon_lower_bound:.2f}",
}
"""The columns of the table of attacks, on the page, in a notebook and on the terminal."""


def page(result: Audit, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    copying = result.copying
    examples = [name for stratum in copying.strata for name in stratum.examples[:SHOWN_STRATUM_EXAMPLES]]
    gallery = _gallery(result, copying.pairs, examples, samples)
    return render(
        "audit.html",
        result,
        outline(result),
        **_shared(result, gallery),
        pairs=copying.pairs,
        examples=SHOWN_STRATUM_EXAMPLES,
        measures_explained=MEASURES_EXPLAINED,
        attacks_explained=ATTACKS_EXPLAINED,
        drawing=drawing,
        evidence=evidence,
        powers=power_rows(copying.power),
        power_sentence=power_sentence(result),
        auc_scale=auc_drawing(result.attacks),
        control_range=CONTROL_AUC_RANGE,
        suspicious_share=SUSPICIOUS_SHARE,
    )


def outline(result: Audit) -> Outline:
    """Return what the audit says in all outputs."""
    sets = {"gen": result.gen, "train": result.train, "holdout": result.holdout}
    given = [source(*one) for one in sets.items()]
    if result.reference is not None:
        sets["reference"] = result.reference
        given.append(f"reference={source('reference', result.reference)}")
    copying, attacks = _measure_rows(result), _attack_rows(result)
    return Outline(
        kind="audit of a generator's samples",
        title=f"Audit of {result.gen.name}, trained on {result.train.name}",
        headline=summary(result),
        sets=sizes(sets),
        signatures=[result.signature],
        call=call("audit", *given, settings=result.settings),
        tables=[
            Table("Copying in the samples", ["Measure", *MEASURE_COLUMNS], copying),
            Table("Attackability", ["Attack", *ATTACK_COLUMNS], attacks),
        ],
        details=[power_sentence(result)],
        warnings=result.warnings,
        failures=unreadable(sets),
    )


def fragment(result: Audit, samples: Mapping[str, Samples] = NO_SAMPLES) -> str:
    """Return measures, attacks and the most suspicious pairs for a notebook, in the notebook's colors."""
    shown = result.copying.pairs[:FRAGMENT_PAIRS]
    gallery = _gallery(result, shown, [], samples)
    return notebook_view("audit_fragment.html", result, **_shared(result, gallery), pairs=shown)


def show(result: Audit) -> None:
    """Print the verdict, and the three blocks of an audit: measures, attacks, and a stated guarantee."""
    copying = result.copying
    print(f"{result.verdict}\n")
    columns = ["Measure", *MEASURE_COLUMNS]
    print_table("1. Copying in the samples", columns, _measure_rows(result), names=["Measure"])
    copies = copying.copies
    print(f"equal embeddings: {copies.same_embedding} generated samples, {copies.fresh_same_embedding} fresh samples")
    if copies.same_pixels is not None:
        print(f"equal pixels: {copies.same_pixels} generated samples, {copies.fresh_same_pixels} fresh samples")
    print(f"kinds of the training set memorized: {len(copying.memorized_strata)} of {len(copying.strata)}")
    print(f"{power_sentence(result)}\n")
    title = f"2. Attackability: members against the holdout, intervals together at {percent(AUDIT_CONFIDENCE)}"
    print_table(title, ["Attack", *ATTACK_COLUMNS], _attack_rows(result), names=["Attack"])
    print(membership_sentence(result))
    print(f"\n3. Stated guarantee\n{guarantee_sentence(result)}")
    print_notes(result.warnings)
    print(result.signature)


def summary(audit: Audit) -> str:
    """Return the findings, one sentence or two for each question."""
    copying, sentences = audit.copying, [audit.verdict]
    if copying.found_by:
        sentences.append(found_sentence(audit))
    else:
        whole = "No measure of the whole set finds" if copying.memorized_strata else "No measure finds"
        sentences.append(
            f"{whole} generated samples nearer to the training set than fresh samples are (adjusted p > "
            f"{AUDIT_ALPHA:g})."
        )
    if copying.memorized_strata:
        found, tested = len(copying.memorized_strata), len(copying.strata)
        sentences.append(f"Copying is found in {found} of {tested} kinds of the training set.")
    elif not copying.found_by:
        sentences.append(power_sentence(audit))
    best = audit.strongest
    low, high = best.statistics.auc_interval
    outcome = "distinguishes members from others" if best.succeeds else "does not distinguish members from others"
    sentences.append(
        f"The strongest attack, {ATTACK_NAMES[best.name]}, {outcome}: {percent(best.statistics.at_1_percent.tpr, 1)} "
        f"of members at 1 % false alarms, AUC {best.statistics.auc:.3f} [{low:.3f}, {high:.3f}]."
    )
    return " ".join([*sentences, guarantee_sentence(audit)])


def found_sentence(audit: Audit) -> str:
    """Return which measures find samples nearer to the training set, and whether that may be for another reason."""
    names = listed([MEASURE_NAMES[name] for name in audit.copying.found_by])
    smooth = (
        "" if audit.nearer_to == "training" else " Samples that are smoother than real samples are so without copying."
    )
    return (
        f"Generated samples are nearer to the training set than fresh samples are (adjusted p ≤ {AUDIT_ALPHA:g}: "
        f"{names}).{smooth}"
    )


def guarantee_sentence(audit: Audit) -> str:
    """Return the answer to the third question: whether the attacks contradict the stated guarantee."""
    stated = audit.stated
    if stated is None:
        return "No guarantee was stated, and this audit is not one."
    claim = f"guarantee of ε = {stated.epsilon:g}, δ = {stated.delta:g}"
    if stated.is_falsified:
        names = ", ".join(ATTACK_NAMES[name] for name in stated.falsified_by)
        return f"The stated {claim} is false: {names} got more than it allows."
    return f"The attacks do not contradict the stated {claim}. This does not confirm it."


def membership_sentence(audit: Audit) -> str:
    """Return the membership-inference score with its null, and that of fresh samples, in two sentences."""
    if audit.membership is None:
        return "Membership-inference score (KAHM, eq. 69): the distances have no density to compare."
    own, fresh = audit.membership.generated, audit.membership.control
    return (
        f"Membership-inference score (KAHM, eq. 69): {own.standardized:.3g}, p = {p_value(own.p_value or 1.0)}; "
        f"95 % of equal densities stay below {own.threshold():.3g}. Fresh samples: {fresh.standardized:.3g}, "
        f"p = {p_value(fresh.p_value or 1.0)}."
    )


def power_sentence(audit: Audit) -> str:
    """Return the share of exact copies that would have been seen, in a sentence."""
    exact = [power for power in audit.copying.power if (power.test, power.kind) == ("calibrated", EXACT)]
    seen = next((power for power in exact if power.probability >= LIKELY_SEEN), None)
    if seen is None:
        return "Not even a quarter of exact copies would surely have been seen: the sets are too small."
    below = [power for power in exact if power.share < seen.share]
    missed = f", {_share(below[-1])} with {below[-1].probability:.2f}" if below else ""
    return (
        f"If {_share(seen)} of the samples had been exact copies, this would have been seen with probability "
        f"{seen.probability:.2f}{missed}."
    )


def power_rows(powers: tuple[Power, ...]) -> dict[str, list[Power]]:
    """Group the power by what is done to the copies and by the test, each in the order of the shares."""
    rows: dict[str, list[Power]] = {}
    for power in powers:
        rows.setdefault(f"{power.kind}, by {'hash' if power.test == 'hash' else 'embedding'}", []).append(power)
    return rows


def evidence(pair: SuspiciousPair) -> str:
    """Return what shows that two samples are one, in a few words."""
    if pair.same_pixels:
        return "equal pixels"
    if pair.hash_distance is not None:
        return counted(pair.hash_distance, "bit")
    return f"{pair.calibrated:.3f}{' over views' if pair.shown_by == 'views' else ''}"


def drawing(measure: Measure) -> dict[str, Any]:
    """Return the scale on which a measure's two intervals fill the drawing."""
    return scale([*measure.interval, *measure.control_interval, measure.value, measure.control])


def auc_drawing(attacks: Sequence[Attack]) -> dict[str, Any]:
    """Return the scale on which all intervals of AUCs, and one half, fill the drawing."""
    return scale([0.5, *(end for one in attacks for of in (one.statistics, one.control) for end in of.auc_interval)])


def _share(power: Power) -> str:
    return percent(power.share, 0 if power.share >= 0.01 else 2)


def _measure_rows(audit: Audit) -> list[list[str]]:
    return [[MEASURE_NAMES[one.name], *texts_of(one, MEASURE_COLUMNS)] for one in _measures(audit)]


def _attack_rows(audit: Audit) -> list[list[str]]:
    return [[ATTACK_NAMES[one.name], *texts_of(one, ATTACK_COLUMNS)] for one in audit.attacks]


def _measures(audit: Audit) -> list[Measure]:
    """Return the measures in the order in which they are shown."""
    return sorted(audit.copying.measures, key=lambda measure: list(MEASURE_NAMES).index(measure.name))


def _shared(audit: Audit, gallery: Gallery) -> dict[str, Any]:
    """Return the variables of both templates."""
    return {
        "measures": _measures(audit),
        "measure_columns": MEASURE_COLUMNS,
        "measure_names": MEASURE_NAMES,
        "attack_columns": ATTACK_COLUMNS,
        "attack_names": ATTACK_NAMES,
        "summary": summary(audit),
        "guarantee": guarantee_sentence(audit),
        "membership": membership_sentence(audit),
        "pictures": gallery.pictures,
        "notes": gallery.notes,
        "confidence": AUDIT_CONFIDENCE,
    }


def _gallery(
    audit: Audit, pairs: Sequence[SuspiciousPair], examples: Sequence[str], samples: Mapping[str, Samples]
) -> Gallery:
    """Return thumbnails of both sets, and a sentence for each set that lacks some."""
    sets = {"gen": audit.gen, "train": audit.train}
    shown = {"gen": [pair.gen for pair in pairs], "train": [*(pair.train for pair in pairs), *examples]}
    return read_gallery(sets, shown, samples, names={"gen": "the generated set", "train": "the training set"})
