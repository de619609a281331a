"""The page, the notebook view and the terminal tables of an audit: three questions, each with its own answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from finc_eval.core.words import figure, join_words, percent, plural
from finc_eval.gallery.pictured import Gallery, read_gallery
from finc_eval.memorization.attacks import CONTROL_AUC_RANGE, Attack, AttackName
from finc_eval.memorization.copying import SUSPICIOUS_SHARE, CopyingMeasure, MeasureName
from finc_eval.memorization.membership import SCORE, SCORE_COLUMNS, score_cells, score_sentence
from finc_eval.memorization.result import Audit, SuspiciousPair
from finc_eval.memorization.settings import AUDIT_ALPHA, AUDIT_CONFIDENCE
from finc_eval.memorization.strata import Stratum
from finc_eval.memorization.tails import EXACT, Power
from finc_eval.memorization.verdict import exceeds
from finc_eval.numerics.attack_statistics import OperatingPoint
from finc_eval.numerics.inference import ALPHA
from finc_eval.report import Page
from finc_eval.report.drawings import Axis
from finc_eval.report.exports.outline import Cell, Outline, TextTable, call, sizes, source, unreadable
from finc_eval.report.formats import p_value
from finc_eval.report.pages import draw_intervals, render, scale
from finc_eval.report.terminal import print_notes, print_one
from finc_eval.samples.source import Samples
from finc_eval.wing import WING

SHOWN_STRATUM_EXAMPLES = 6  # number of training samples of a stratum on a page

MEASURES: dict[MeasureName, tuple[str, str]] = {
    "hash": (
        "Perceptual hash",
        "the same share by perceptual hashes, whose distance is the least over mirrored, shifted and cropped views",
    ),
    "views": (
        "Views of suspects",
        "the same share by embedding, for suspicious samples over mirrored, widened and shifted views",
    ),
    "calibrated": (
        "Calibrated distance",
        f"share of samples as near to the training set as the {percent(SUSPICIOUS_SHARE)} nearest fresh samples",
    ),
    "authpct": ("AuthPct", "percentage of samples farther from their training sample than that is from its own set"),
    "c_t": (
        "C_T",
        "rank test of distances to the training set, by kind of the training set; far above 0 means poor samples",
    ),
    "dcr": ("DCR share", "share of samples nearer to the training set than to the holdout"),
    "nndr": ("NNDR", "nearest over second nearest distance, median"),
    "mifid": ("MiFID", "Fréchet distance over the cosine distance to the training set; p is of that distance"),
    "fld_gap": (
        "FLD gap",
        "−100 times the excess log-likelihood of training over unseen samples, around generated samples",
    ),
}
"""Names of the measures, in the order of the table, each with what it is."""

ATTACKS: dict[AttackName, tuple[str, str]] = {
    "nearest": ("Nearest neighbor", "distance to the nearest generated sample"),
    "ball": ("Monte-Carlo ball", "generated samples within a radius"),
    "domias": ("DOMIAS", "density of generated samples over the density of a reference"),
    "kahm": ("KAHM distance", "distance to affine hulls of generated samples"),
}
"""Names of the attacks, each with what it goes by."""


def measure_text(measure: CopyingMeasure, value: float) -> str:
    """Return a value of a measure as text, with the digits that the measure needs."""
    if measure.name in ("dcr", "calibrated", "hash", "views"):
        return percent(value, 1)
    large = abs(value) >= 100
    digits = ".2f" if measure.name == "c_t" else ".1f" if measure.name == "authpct" or large else ".3g"
    return figure(value, digits)


def _above_control(
    name: str,
    write: Callable[[float], str],
    generated: tuple[float, tuple[float, float]],
    control: tuple[float, tuple[float, float]],
    drawn: Axis,
    ticks: Sequence[float] = (),
) -> Cell:
    """Return the cell of an interval, which a page draws above that of the control."""
    text = f"[{', '.join(map(write, generated[1]))}]"
    rows = [
        ("own", "generated", *generated, f"{write(generated[0])} {text}"),
        ("control", "control", *control, write(control[0])),
    ]
    return draw_intervals(text, name, rows, drawn, ticks)


def _measures_table(measures: Sequence[CopyingMeasure]) -> TextTable:
    rows: list[list[Cell | str]] = []
    for measure in measures:
        (name, meaning), write = MEASURES[measure.name], partial(measure_text, measure)
        generated, control = (measure.value, measure.interval), (measure.control, measure.control_interval)
        drawn = scale([generated[0], control[0], *generated[1], *control[1]])
        interval = _above_control(name, write, generated, control, drawn)
        copies = "lower it" if measure.copies_lower else "raise it"
        rows.append(
            [
                Cell(name, note=meaning),
                write(generated[0]),
                interval,
                write(control[0]),
                copies,
                p_value(measure.adjusted),
            ]
        )
    columns = ["Measure", "Generated", "Interval", "Control", "Copies", "Adj. p"]
    muted = [measure.adjusted > ALPHA for measure in measures]
    return TextTable("Copying in the samples", columns, rows, words=["Copies"], bold="Generated", muted=muted)


def _rate(point: OperatingPoint) -> Cell:
    ends = ", ".join(percent(end, 1) for end in point.interval)
    return Cell(percent(point.tpr, 1), note=f"[{ends}]{'' if point.resolved else ', rough'}")


def _attacks_table(attacks: Sequence[Attack]) -> TextTable:
    """Return the table of attacks, whose AUCs are drawn on one scale, with one half."""
    drawn = scale(
        [0.5, *(end for attack in attacks for of in (attack.statistics, attack.control) for end in of.auc_interval)]
    )
    rows: list[list[Cell | str]] = []
    for attack in attacks:
        (name, meaning), generated, control = ATTACKS[attack.name], attack.statistics, attack.control
        both = (generated.auc, generated.auc_interval), (control.auc, control.auc_interval)
        cells: list[Cell | str] = [
            Cell(name, note=meaning),
            f"{generated.auc:.3f}",
            _above_control(f"AUC of {name}", "{:.3f}".format, *both, drawn, [0.5]),
            Cell(f"{control.auc:.3f}", note="" if attack.control_is_sound else "not sound"),
            f"{generated.advantage:.3f}",
            _rate(generated.at_1_percent),
            _rate(generated.at_01_percent),
            f"{generated.epsilon_lower_bound:.2f}",
        ]
        rows.append(cells)
    rates = ["True positives at 1 %", "at 0.1 %"]
    columns = ["Attack", "AUC", "Interval", "Control", "Advantage", *rates, "ε at least"]
    muted = [not attack.succeeds for attack in attacks]
    return TextTable("Attackability", columns, rows, bold="AUC", muted=muted)


def page(result: Audit, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    return render(
        result,
        outline(result),
        gallery(result, samples),
        "memorization/page.html",
        pairs=result.copying.pairs,
        evidence=evidence,
        power=_power_table(result.copying.power),
        strata=_strata_table(result.copying.strata),
        membership=membership_sentence(result),
        scores=_membership_table(result),
        guarantee=guarantee_sentence(result),
        ceilings=_ceilings_table(result),
        power_sentence=power_sentence(result),
        control_range=CONTROL_AUC_RANGE,
        suspicious_share=SUSPICIOUS_SHARE,
        confidence=AUDIT_CONFIDENCE,
    )


def gallery(audit: Audit, samples: Mapping[str, Samples]) -> Gallery:
    """Return pictures of both sets, and a sentence for each set that lacks some."""
    pairs = audit.copying.pairs
    examples = [name for stratum in audit.copying.strata for name in stratum.examples[:SHOWN_STRATUM_EXAMPLES]]
    sets = {"gen": audit.gen, "train": audit.train}
    shown = {"gen": [pair.gen for pair in pairs], "train": [*(pair.train for pair in pairs), *examples]}
    return read_gallery(sets, shown, samples, names={"gen": "the generated set", "train": "the training set"})


def outline(result: Audit) -> Outline:
    """Return what the audit says in all outputs."""
    sets = {"gen": result.gen, "train": result.train, "holdout": result.holdout}
    given = [source(*pair) for pair in sets.items()]
    if result.reference is not None:
        sets["reference"] = result.reference
        given.append(f"reference={source('reference', result.reference)}")
    measures = sorted(result.copying.measures, key=lambda measure: list(MEASURES).index(measure.name))
    return Outline(
        kind="audit of a generator's samples",
        title=f"Audit of {result.gen.name}, trained on {result.train.name}",
        says=says(result),
        sets=sizes(sets),
        signatures=[result.signature],
        call=call("audit", *given, settings=result.settings),
        tables=[_measures_table(measures), _attacks_table(result.attacks)],
        details=[power_sentence(result), membership_sentence(result)],
        warnings=result.warnings,
        failures=unreadable(sets),
    )


def notebook(result: Audit) -> Outline:
    """Return what a notebook shows: the outline, and the most suspicious pairs."""
    rows: list[list[Cell | str]] = [
        [
            Cell(pair.gen, samples=[("gen", [pair.gen])]),
            Cell(pair.train, samples=[("train", [pair.train])]),
            evidence(pair),
            percent(pair.fresh_share, 1),
        ]
        # 8: number of suspicious pairs in a notebook.
        for pair in result.copying.pairs[:8]
    ]
    columns = ["Sample", "Training sample", "Shown by", "Fresh as near"]
    said = outline(result)
    pairs = TextTable("The most suspicious samples", columns, rows, words=columns[1:3])
    return replace(said, tables=[*said.tables, pairs], warnings=[membership_sentence(result), *said.warnings])


def show(result: Audit) -> None:
    """Print the verdict, and the three blocks of an audit: measures, attacks, and a stated guarantee."""
    copying, (measures, attacks) = result.copying, outline(result).tables
    print(f"{result.verdict}\n")
    print_one(replace(measures, title=f"1. {measures.title}"))
    copies = copying.copies
    print(f"equal embeddings: {copies.same_embedding} generated samples, {copies.fresh_same_embedding} fresh samples")
    if copies.same_pixels is not None:
        print(f"equal pixels: {copies.same_pixels} generated samples, {copies.fresh_same_pixels} fresh samples")
    print(f"kinds of the training set memorized: {len(copying.memorized_strata)} of {len(copying.strata)}")
    print(f"{power_sentence(result)}\n")
    how = f"members against the holdout, intervals together at {percent(AUDIT_CONFIDENCE)}"
    print_one(replace(attacks, title=f"2. {attacks.title}: {how}"))
    print(membership_sentence(result))
    print(f"\n3. Stated guarantee\n{guarantee_sentence(result)}")
    print_notes(result.warnings)
    print(result.signature)


def says(audit: Audit) -> dict[str, str]:
    """Return the findings, one sentence or two for each question."""
    best = audit.strongest
    low, high = best.statistics.auc_interval
    outcome = "distinguishes members from others" if best.succeeds else "does not distinguish members from others"
    attack = (
        f"The strongest attack, {ATTACKS[best.name][0]}, {outcome}: {percent(best.statistics.at_1_percent.tpr, 1)} "
        f"of members at 1 % false alarms, AUC {best.statistics.auc:.3f} [{low:.3f}, {high:.3f}]."
    )
    last = {"attack": attack, "guarantee": guarantee_sentence(audit)}
    return {"verdict": audit.verdict} | _say_copying(audit) | last


def _say_copying(audit: Audit) -> dict[str, str]:
    """Return what the measures of copying find, in the whole set and by kind."""
    copying, sentences = audit.copying, {}
    if copying.found_by:
        names = join_words([MEASURES[name][0] for name in copying.found_by])
        sentences["measures"] = (
            "Generated samples are nearer to the training set than fresh samples are (adjusted p ≤ "
            f"{AUDIT_ALPHA:g}: {names})."
        )
        if audit.nearer_to != "training":
            sentences["smooth"] = "Samples that are smoother than real samples are so without copying."
    else:
        whole = "No measure of the whole set finds" if copying.memorized_strata else "No measure finds"
        sentences["measures"] = (
            f"{whole} generated samples nearer to the training set than fresh samples are (adjusted p > "
            f"{AUDIT_ALPHA:g})."
        )
    if copying.memorized_strata:
        memorized, tested = len(copying.memorized_strata), len(copying.strata)
        sentences["kinds"] = f"Copying is found in {memorized} of {tested} kinds of the training set."
    elif not copying.found_by:
        sentences["power"] = power_sentence(audit)
    return sentences


def guarantee_sentence(audit: Audit) -> str:
    """Return the answer to the third question: whether the attacks contradict the stated guarantee."""
    stated = audit.stated
    if stated is None:
        return "No guarantee was stated, and this audit is not one."
    claim = f"guarantee of ε = {stated.epsilon:g}, δ = {stated.delta:g}"
    if stated.is_falsified:
        names = ", ".join(ATTACKS[name][0] for name in stated.falsified_by)
        return f"The stated {claim} is false: {names} got more than it allows."
    if any(exceeds(attack, stated.epsilon, stated.ceilings) for attack in audit.attacks):
        return (
            f"The attacks got more than the stated {claim} allows, but no measure finds samples nearer to the training "
            "set: another holdout has the same effect. Nothing is concluded."
        )
    return f"The attacks do not contradict the stated {claim}. This does not confirm it."


def membership_sentence(audit: Audit) -> str:
    """Return the membership-inference score with its null, and the score of its control, in two sentences."""
    if audit.membership is None:
        tried = any(attack.name == "kahm" for attack in audit.attacks)
        why = "the distances have no density to compare" if tried else f"not computed without {WING}"
        return f"{SCORE}: {why}."
    control, p, *_ = score_cells(audit.membership.control)
    return f"{score_sentence(audit.membership.generated)} One half of the training set: {control}, p = {p}."


def power_sentence(audit: Audit) -> str:
    """Return the share of exact copies that would have been seen, in a sentence."""
    exact = [power for power in audit.copying.power if (power.test, power.kind) == ("calibrated", EXACT)]
    # 0.8: probability from which on copies count as visible.
    seen = next((power for power in exact if power.probability >= 0.8), None)
    if seen is None:
        return "Not even a quarter of exact copies would surely have been seen: the sets are too small."
    below = [power for power in exact if power.share < seen.share]
    missed = f", {_share(below[-1])} with {below[-1].probability:.2f}" if below else ""
    return (
        f"If {_share(seen)} of the samples had been exact copies, this would have been seen with probability "
        f"{seen.probability:.2f}{missed}."
    )


def _power_table(powers: Sequence[Power]) -> TextTable | None:
    """Return the power by what is done to the copies and by the test, each in the order of the shares."""
    rows: dict[str, dict[str, str]] = {}
    for power in powers:
        name = f"{power.kind}, by {'hash' if power.test == 'hash' else 'embedding'}"
        rows.setdefault(name, {})[_share(power)] = f"{power.probability:.2f}"
    if not rows:
        return None
    shares = dict.fromkeys(share for row in rows.values() for share in row)
    cells = [[name, *(row.get(share, "–") for share in shares)] for name, row in rows.items()]
    return TextTable("Power: copies that would have been seen", ["Copies", *shares], cells)


def _strata_table(strata: Sequence[Stratum]) -> TextTable | None:
    columns: dict[str, Callable[[Stratum], Cell | str]] = {
        "Kind": lambda stratum: Cell(
            f"{stratum.name} ({stratum.id})" if stratum.name else stratum.id,
            samples=[("train", stratum.examples[:SHOWN_STRATUM_EXAMPLES])],
        ),
        "Generated": lambda stratum: f"{stratum.generated:,}",
        "Suspicious": lambda stratum: Cell(
            f"{stratum.suspicious:,}", percent(stratum.suspicious / stratum.generated, 1)
        ),
        "Suspicious fresh": lambda stratum: Cell(
            f"{stratum.fresh_suspicious:,}", percent(stratum.fresh_suspicious / stratum.fresh, 1)
        ),
        "Z": lambda stratum: figure(stratum.z, ".1f"),
        "Adj. p": lambda stratum: p_value(stratum.p_value),
    }
    muted = [stratum.p_value > ALPHA for stratum in strata]
    return TextTable.of("Copying by kind", columns, strata, bold="Suspicious", muted=muted) if strata else None


def _membership_table(audit: Audit) -> TextTable | None:
    if audit.membership is None:
        return None
    scores = {"generated samples": audit.membership.generated, "one half of the training set": audit.membership.control}
    rows = [[name, *score_cells(score)] for name, score in scores.items()]
    return TextTable("Membership", ["Machines of", *SCORE_COLUMNS], rows)


def _ceilings_table(audit: Audit) -> TextTable | None:
    """Return the ceilings of a stated guarantee, and what each attack reaches at least."""
    if (stated := audit.stated) is None:
        return None
    most = stated.ceilings
    texts = [
        f"{stated.epsilon:g}",
        f"{most.auc:.3f}",
        percent(most.tpr_at_1_percent, 1),
        percent(most.tpr_at_01_percent, 2),
    ]
    rows = [["Stated: at most", *texts]]
    for attack in audit.attacks:
        rates_of = attack.statistics
        rates = (
            percent(rate.interval[0], digits)
            for rate, digits in ((rates_of.at_1_percent, 1), (rates_of.at_01_percent, 2))
        )
        epsilon, auc = f"{rates_of.epsilon_lower_bound:.2f}", f"{rates_of.auc_interval[0]:.3f}"
        rows.append([f"{ATTACKS[attack.name][0]}: at least", epsilon, auc, *rates])
    muted = [False, *(attack.name not in stated.falsified_by for attack in audit.attacks)]
    return TextTable("Ceilings", ["Bound", "ε", "AUC", "True positives at 1 %", "at 0.1 %"], rows, muted=muted)


def evidence(pair: SuspiciousPair) -> str:
    """Return what shows that two samples are one, in a few words."""
    if pair.same_pixels:
        return "equal pixels"
    if pair.hash_distance is not None:
        return plural(pair.hash_distance, "bit")
    return f"{pair.calibrated:.3f}{' over views' if pair.shown_by == 'views' else ''}"


def _share(power: Power) -> str:
    return percent(power.share, 0 if power.share >= 0.01 else 2)


PAGE = Page(says, outline, draw=page, notebook=notebook, gallery=gallery, print=show)
