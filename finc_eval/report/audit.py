"""Audit as page, notebook view and terminal table: three questions, each with its own answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

from finc_eval.core.checks import check_choice
from finc_eval.memorization.attacks import CONTROL_AUC_RANGE, Attack, AttackName
from finc_eval.memorization.copying import SUSPICIOUS_SHARE, Measure, MeasureName
from finc_eval.memorization.power import Power
from finc_eval.memorization.result import AUDIT_ALPHA, AUDIT_CONFIDENCE, Audit, SuspiciousPair
from finc_eval.report.formats import p_value, percent
from finc_eval.report.pages import WHISKER_WIDTH, environment
from finc_eval.report.tables import print_table
from finc_eval.report.thumbnails import Thumbnail, read_thumbnails

FRAGMENT_PAIRS = 8
"""Number of suspicious pairs in a notebook."""

SHOWN_STRATUM_EXAMPLES = 6
"""Number of training samples of a stratum on a page."""

LIKELY_SEEN = 0.8
"""Probability from which on copies count as visible."""

MEASURE_NAMES: dict[MeasureName, str] = {
    "calibrated": "Calibrated distance",
    "authpct": "AuthPct",
    "c_t": "C_T",
    "dcr": "DCR share",
    "nndr": "NNDR",
    "mifid": "MiFID",
    "fld_gap": "FLD gap",
}

MEASURES_EXPLAINED: dict[MeasureName, str] = {
    "calibrated": f"share of samples as near to the training set as the nearest {SUSPICIOUS_SHARE:.0%} of fresh ones",
    "authpct": "percentage of samples farther from their training sample than that is from its own set",
    "c_t": "rank test of distances to the training set, by mode of the training set; far above 0 means poor samples",
    "dcr": "share of samples nearer to the training set than to the holdout",
    "nndr": "nearest over second nearest distance, median",
    "mifid": "Fréchet distance over the cosine distance to the training set; p is of that distance",
    "fld_gap": "−100 times the excess log-likelihood of training samples over unseen ones, around generated samples",
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


class MeasureRow(NamedTuple):
    """Text of one measure, for page, notebook and terminal."""

    measure: Measure
    name: str
    explained: str
    value: str
    interval: str
    control: str
    copies: str
    p: str


class AttackRow(NamedTuple):
    """Text of one attack, for page, notebook and terminal."""

    attack: Attack
    name: str
    explained: str
    auc: str
    interval: str
    control: str
    advantage: str
    at_1_percent: str
    at_01_percent: str
    epsilon: str


def page(result: Audit, samples: Mapping[str, Any]) -> str:
    """Return the page of an audit as one HTML file that loads nothing.

    Args:
        result: the audit.
        samples: where the samples of "gen" and "train" are now, if not where they were embedded from. Samples that
            cannot be read are shown by their ids, and the page says why.

    Raises:
        UsageError: a label is neither "gen" nor "train".
        DataError: samples that were passed cannot be opened.
    """
    for label in samples:
        check_choice("a label of samples", label, ("gen", "train"))
    result.gen.check_samples(samples.get("gen"))
    result.train.check_samples(samples.get("train"))
    shown = result.copying.pairs
    examples = [name for stratum in result.copying.strata for name in stratum.examples[:SHOWN_STRATUM_EXAMPLES]]
    pictures, notes = _pictures(result, shown, examples, samples)
    return (
        environment()
        .get_template("audit.html")
        .render(
            _shared(result, pictures, notes),
            pairs=shown,
            examples=SHOWN_STRATUM_EXAMPLES,
            warnings=result.warnings,
            drawing=drawing,
            powers=power_rows(result.copying.power),
            power_sentence=power_sentence(result),
            auc_scale=auc_drawing(result.attacks),
            control_range=CONTROL_AUC_RANGE,
            suspicious_share=SUSPICIOUS_SHARE,
            version=version("finc-eval"),
        )
    )


def fragment(result: Audit) -> str:
    """Return measures, attacks and the most suspicious pairs for a notebook, in the notebook's colors."""
    shown = result.copying.pairs[:FRAGMENT_PAIRS]
    pictures, notes = _pictures(result, shown, [], {})
    return environment().get_template("audit_fragment.html").render(_shared(result, pictures, notes), pairs=shown)


def show(result: Audit) -> None:
    """Print the three blocks of an audit: measures, attacks, and a stated guarantee."""
    copying = result.copying
    rows = [[row.name, f"{row.value} {row.interval}", row.control, row.copies, row.p] for row in measure_rows(result)]
    columns = ["measure", f"generated [{percent(AUDIT_CONFIDENCE)}]", "fresh samples", "copies", "adjusted p"]
    print_table("1. Copying in the samples", columns, rows)
    print(f"exact copies: {copying.exact_copies} generated samples, {copying.fresh_exact_copies} fresh ones")
    print(f"modes of the training set memorized: {len(copying.memorized_strata)} of {len(copying.strata)}")
    print(f"{power_sentence(result)}\n")
    rows = [
        [
            row.name,
            f"{row.auc} {row.interval}",
            row.control,
            row.advantage,
            row.at_1_percent,
            row.at_01_percent,
            row.epsilon,
        ]
        for row in attack_rows(result)
    ]
    columns = ["attack", "AUC", "fresh samples", "advantage", "TPR at 1 %", "at 0.1 %", "epsilon at least"]
    together = f"intervals together at {percent(AUDIT_CONFIDENCE)}"
    print_table(f"2. Attackability: members against the holdout, {together}", columns, rows)
    print(f"\n3. Stated guarantee\n{guarantee_sentence(result)}")
    for warning in result.warnings:
        print(f"note: {warning}")
    print(result.signature)


def measure_rows(audit: Audit) -> list[MeasureRow]:
    """Return the rows of the measures, in the order in which they are shown."""
    by_name = {measure.name: measure for measure in audit.copying.measures}
    return [
        MeasureRow(
            measure=measure,
            name=name,
            explained=MEASURES_EXPLAINED[measure.name],
            value=measure_text(measure, measure.value),
            interval=f"[{measure_text(measure, measure.interval[0])}, {measure_text(measure, measure.interval[1])}]",
            control=measure_text(measure, measure.control),
            copies="lower it" if measure.copies_lower else "raise it",
            p=p_value(measure.adjusted),
        )
        for key, name in MEASURE_NAMES.items()
        if (measure := by_name.get(key)) is not None
    ]


def attack_rows(audit: Audit) -> list[AttackRow]:
    """Return the rows of the attacks."""
    return [
        AttackRow(
            attack=attack,
            name=ATTACK_NAMES[attack.name],
            explained=ATTACKS_EXPLAINED[attack.name],
            auc=f"{found.auc:.3f}",
            interval=f"[{found.auc_interval[0]:.3f}, {found.auc_interval[1]:.3f}]",
            control=f"{attack.control.auc:.3f}",
            advantage=f"{found.advantage:.3f}",
            at_1_percent=percent(found.at_1_percent.tpr, 1),
            at_01_percent=percent(found.at_01_percent.tpr, 1),
            epsilon=f"{found.epsilon_lower_bound:.2f}",
        )
        for attack in audit.attacks
        for found in (attack.statistics,)
    ]


def summary(audit: Audit) -> str:
    """Return the findings, one sentence or two for each question."""
    copying = audit.copying
    if copying.found_by:
        names = ", ".join(MEASURE_NAMES[name] for name in copying.found_by)
        sentences = [
            f"Generated samples are nearer to the training set than fresh ones are (adjusted p ≤ {AUDIT_ALPHA:g}: "
            f"{names})."
        ]
        if count := copying.exact_copies:
            have = "sample has" if count == 1 else "samples have"
            sentences.append(f"{count:,} generated {have} the same embedding as a training sample.")
        if copying.memorized_strata:
            found, tested = len(copying.memorized_strata), len(copying.strata)
            sentences.append(f"Copying is found in {found} of {tested} modes of the training set.")
    else:
        sentences = [
            "No measure finds generated samples nearer to the training set than fresh ones are (adjusted p > "
            f"{AUDIT_ALPHA:g}).",
            power_sentence(audit),
        ]
    best = audit.strongest
    low, high = best.statistics.auc_interval
    tells = "tells members from others" if best.tells else "does not tell members from others"
    sentences.append(
        f"The strongest attack, {ATTACK_NAMES[best.name]}, {tells}: {percent(best.statistics.at_1_percent.tpr, 1)} of "
        f"members at 1 % false alarms, AUC {best.statistics.auc:.3f} [{low:.3f}, {high:.3f}]."
    )
    return " ".join([*sentences, guarantee_sentence(audit)])


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


def power_sentence(audit: Audit) -> str:
    """Return the share of exact copies that would have been seen, in a sentence."""
    exact = [power for power in audit.copying.power if power.noise == 0]
    seen = next((power for power in exact if power.probability >= LIKELY_SEEN), None)
    if seen is None:
        return "Not even a quarter of exact copies would surely have been seen: the sets are too small."
    below = [power for power in exact if power.share < seen.share]
    missed = f", {_share(below[-1])} with {below[-1].probability:.2f}" if below else ""
    return (
        f"If {_share(seen)} of the samples had been exact copies, this would have been seen with probability "
        f"{seen.probability:.2f}{missed}."
    )


def power_rows(powers: tuple[Power, ...]) -> dict[float, list[Power]]:
    """Group the power by noise, each in the order of the shares."""
    return {noise: [power for power in powers if power.noise == noise] for noise in sorted({p.noise for p in powers})}


def measure_text(measure: Measure, value: float) -> str:
    """Return a value of a measure as text, with the digits that the measure needs."""
    if measure.name in ("dcr", "calibrated"):
        return percent(value, 1)
    large = abs(value) >= 100
    digits = ".2f" if measure.name == "c_t" else ".1f" if measure.name == "authpct" or large else ".3g"
    return f"{value:{digits}}".replace("-", "−")


def drawing(measure: Measure) -> dict[str, Any]:
    """Return the scale on which a measure's two intervals fill the drawing."""
    return _filled([*measure.interval, *measure.control_interval, measure.value, measure.control])


def auc_drawing(attacks: Sequence[Attack]) -> dict[str, Any]:
    """Return the scale on which all intervals of AUCs, and one half, fill the drawing."""
    return _filled([0.5, *(end for one in attacks for of in (one.statistics, one.control) for end in of.auc_interval)])


def _filled(values: Sequence[float]) -> dict[str, Any]:
    low, high = min(values), max(values)
    span = high - low or 1.0

    def at(value: float) -> str:
        return f"{6 + (WHISKER_WIDTH - 12) * (value - low) / span:.1f}"

    return {"at": at, "width": WHISKER_WIDTH}


def _share(power: Power) -> str:
    return percent(power.share, 0 if power.share >= 0.01 else 2)


def _shared(audit: Audit, pictures: Mapping[str, dict[str, Thumbnail]], notes: list[str]) -> dict[str, Any]:
    """Return the variables of both templates."""
    return {
        "audit": audit,
        "measures": measure_rows(audit),
        "attacks": attack_rows(audit),
        "summary": summary(audit),
        "guarantee": guarantee_sentence(audit),
        "pictures": pictures,
        "notes": notes,
        "alpha": AUDIT_ALPHA,
        "confidence": AUDIT_CONFIDENCE,
    }


def _pictures(
    audit: Audit, shown: tuple[SuspiciousPair, ...], examples: list[str], samples: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Thumbnail]], list[str]]:
    """Return thumbnails of both sets, and a sentence for each set that lacks some."""
    wanted = {"gen": [pair.gen for pair in shown], "train": [*(pair.train for pair in shown), *examples]}
    names = {"gen": "the generated set", "train": "the training set"}
    found, notes = {}, []
    for label, info in (("gen", audit.gen), ("train", audit.train)):
        source = info.source if samples.get(label) is None else samples[label]
        argument = f"samples={{{label!r}: …}}"
        found[label], note = read_thumbnails(names[label], source, wanted[label], argument, info.clip)
        notes += [note] if note else []
    return found, notes
