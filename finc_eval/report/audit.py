"""From an audit to HTML: three questions, each with its own answer, and the most suspicious pairs as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from finc_eval.memorization.attacks import CONTROL, Attack, AttackName
from finc_eval.memorization.copying import LOWEST, Measure, MeasureName
from finc_eval.memorization.power import Power
from finc_eval.memorization.result import ALPHA, LEVEL, Audit, Pair
from finc_eval.report.formats import p_value, percent
from finc_eval.report.pages import WHISKER_WIDTH, environment
from finc_eval.report.thumbnails import Thumbnail, read_thumbnails
from finc_eval.samples import Samples

SHOWN_IN_FRAGMENT = 8

EXAMPLES = 6
"""Training samples of a kind."""

LIKELY = 0.8
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

EXPLAINED: dict[MeasureName, str] = {
    "calibrated": f"share of samples as near to the training set as the nearest {LOWEST:.0%} of fresh ones",
    "authpct": "of a hundred samples, how many are farther from their training sample than others of its set are",
    "c_t": "rank test of distances to the training set, by kind; far above 0 means poor samples",
    "dcr": "share of samples nearer to the training set than to the holdout",
    "nndr": "nearest over second nearest distance, median",
    "mifid": "Fréchet distance over the cosine distance to the training set; p is of that distance",
    "fld_gap": "how much likelier training samples are than unseen ones, around the generated",
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


def render_audit(audit: Audit, *, gen_samples: Samples | None = None, train_samples: Samples | None = None) -> str:
    """The page of an audit as the text of one HTML file that loads nothing.

    Args:
        audit: what to show.
        gen_samples: where the generated samples are, if not at their own source: anything that `open_source` takes.
            Samples that cannot be read are shown by their ids, and the page says why.
        train_samples: where the training samples are, likewise.
    """
    shown = audit.copying.pairs
    examples = [name for kind in audit.copying.kinds for name in kind.examples[:EXAMPLES]]
    pictures, notes = _pictures(audit, shown, examples, gen_samples, train_samples)
    return (
        environment()
        .get_template("audit.html")
        .render(
            _shared(audit, pictures, notes),
            pairs=shown,
            examples=EXAMPLES,
            warnings=audit.warnings,
            explained=EXPLAINED,
            attacks_explained=ATTACKS_EXPLAINED,
            powers=power_rows(audit.copying.power),
            power_sentence=power_sentence(audit),
            auc_scale=auc_drawing(audit.attacks),
            control_range=CONTROL,
            lowest=LOWEST,
            version=version("finc-eval"),
        )
    )


def render_audit_fragment(audit: Audit) -> str:
    """Measures, attacks and the most suspicious pairs, for a notebook; it takes on the notebook's colors."""
    shown = audit.copying.pairs[:SHOWN_IN_FRAGMENT]
    pictures, notes = _pictures(audit, shown, [], None, None)
    return environment().get_template("audit_fragment.html").render(_shared(audit, pictures, notes), pairs=shown)


def summary(audit: Audit) -> str:
    """What was found, one sentence or two a question."""
    copying = audit.copying
    found = copying.found_by
    if found:
        names = ", ".join(MEASURE_NAMES[measure.name] for measure in found)
        sentences = [
            f"Generated samples are nearer to the training set than fresh ones are (adjusted p ≤ {ALPHA:g}: {names})."
        ]
        if copying.exact[0]:
            sentences.append(f"{copying.exact[0]:,} have the very embedding of a training sample.")
        if copying.memorized_kinds:
            kinds = len(copying.memorized_kinds)
            sentences.append(f"Copying is found in {kinds} of {len(copying.kinds)} kinds of training samples.")
    else:
        sentences = [
            "No measure finds generated samples nearer to the training set than fresh ones are (adjusted p > "
            f"{ALPHA:g}).",
            power_sentence(audit),
        ]
    best = audit.strongest
    low, high = best.statistics.auc_interval
    tells = "tells members from others" if best.tells else "does not tell members from others"
    sentences.append(
        f"The strongest attack, {ATTACK_NAMES[best.name]}, {tells}: {percent(best.statistics.at_1_percent.tpr, 1)} of "
        f"members at 1 % false alarms, AUC {best.statistics.auc:.3f} [{low:.3f}, {high:.3f}]."
    )
    if audit.stated is None:
        sentences.append("No guarantee was stated, and this audit is none.")
    elif audit.stated.is_falsified:
        names = ", ".join(ATTACK_NAMES[name] for name in audit.stated.falsified_by)
        sentences.append(
            f"The stated guarantee of ε = {audit.stated.epsilon:g}, δ = {audit.stated.delta:g} is false: {names} got "
            "more than it allows."
        )
    else:
        sentences.append(
            f"The attacks do not contradict the stated guarantee of ε = {audit.stated.epsilon:g}, δ = "
            f"{audit.stated.delta:g}, which does not confirm it."
        )
    return " ".join(sentences)


def power_sentence(audit: Audit) -> str:
    """How many exact copies would have been seen, in a sentence."""
    exact = [power for power in audit.copying.power if power.noise == 0]
    seen = next((power for power in exact if power.probability >= LIKELY), None)
    if seen is None:
        return "Not even a quarter of exact copies would surely have been seen: the sets are too small."
    below = [power for power in exact if power.share < seen.share]
    missed = f", {_share(below[-1])} with {below[-1].probability:.2f}" if below else ""
    return (
        f"Had {_share(seen)} of the samples been exact copies, that would have been seen with probability "
        f"{seen.probability:.2f}{missed}."
    )


def power_rows(powers: tuple[Power, ...]) -> dict[float, list[Power]]:
    """The power by noise, each in the order of the shares."""
    return {noise: [power for power in powers if power.noise == noise] for noise in sorted({p.noise for p in powers})}


def cell(measure: Measure, value: float) -> str:
    """A value of a measure as text, in as many digits as it takes."""
    if measure.name in ("dcr", "calibrated"):
        return percent(value, 1)
    large = abs(value) >= 100
    digits = ".2f" if measure.name == "c_t" else ".1f" if measure.name == "authpct" or large else ".3g"
    text = f"{value:{digits}}"
    return text.replace("-", "−")


def drawing(measure: Measure) -> dict[str, Any]:
    """The scale of a measure's two intervals, on which they fill the drawing."""
    return _filled([*measure.interval, *measure.control_interval, measure.value, measure.control])


def auc_drawing(attacks: Sequence[Attack]) -> dict[str, Any]:
    """The scale of all intervals of AUCs, and of one half."""
    return _filled([0.5, *(end for one in attacks for of in (one.statistics, one.control) for end in of.auc_interval)])


def _filled(values: Sequence[float]) -> dict[str, Any]:
    """The scale on which these values fill the drawing."""
    low, high = min(values), max(values)
    span = high - low or 1.0

    def at(value: float) -> str:
        return f"{6 + (WHISKER_WIDTH - 12) * (value - low) / span:.1f}"

    return {"at": at, "width": WHISKER_WIDTH}


def _share(power: Power) -> str:
    return percent(power.share, 0 if power.share >= 0.01 else 2)


def _shared(audit: Audit, pictures: Mapping[str, dict[str, Thumbnail]], notes: list[str]) -> dict[str, Any]:
    """What page and fragment speak of."""
    by_name = {measure.name: measure for measure in audit.copying.measures}
    return {
        "audit": audit,
        "measures": [by_name[name] for name in MEASURE_NAMES if name in by_name],
        "measure_names": MEASURE_NAMES,
        "attack_names": ATTACK_NAMES,
        "summary": summary(audit),
        "cell": cell,
        "drawing": drawing,
        "p_text": p_value,
        "pictures": pictures,
        "notes": notes,
        "alpha": ALPHA,
        "level": LEVEL,
    }


def _pictures(
    audit: Audit,
    shown: tuple[Pair, ...],
    examples: list[str],
    gen_samples: object,
    train_samples: object,
) -> tuple[dict[str, dict[str, Thumbnail]], list[str]]:
    """Thumbnails of both sets, and a sentence for each that lacks some."""
    wanted = {"gen": [pair.gen for pair in shown], "train": [*(pair.train for pair in shown), *examples]}
    given = {"gen": gen_samples, "train": train_samples}
    names = {"gen": "the generated set", "train": "the training set"}
    found, notes = {}, []
    for label, info in (("gen", audit.gen), ("train", audit.train)):
        source = info.source if given[label] is None else given[label]
        found[label], note = read_thumbnails(names[label], source, wanted[label], f"{label}_samples", info.clip)
        notes += [note] if note else []
    return found, notes
