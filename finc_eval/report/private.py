"""From scores against a private sketch to HTML: who is nearer, how sure that is, and what the owners promise."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from finc_eval.core.signature import Signature
from finc_eval.privacy.dp.gaussian_mechanism import Guarantee
from finc_eval.privacy.reference.result import PairedDifference, Part, PrivateScore
from finc_eval.report.formats import percent
from finc_eval.report.pages import ALPHA, environment, interval_scale


def render_private(
    scores: Sequence[PrivateScore],
    pairs: Sequence[PairedDifference],
    level: float,
    guarantees: Sequence[Guarantee],
    signature: Signature,
) -> str:
    """The page of one or several scores as the text of one HTML file that loads nothing."""
    parts: list[tuple[PrivateScore, Part]] = [
        (score, part) for score in scores for part in (*score.degrees, *score.classes)
    ]
    return (
        environment()
        .get_template("private_score.html")
        .render(
            scores=scores,
            pairs=pairs,
            parts=parts,
            scales={
                "scores": interval_scale((score.value, score.interval) for score in scores),
                "pairs": interval_scale((pair.value, pair.interval) for pair in pairs),
                "parts": interval_scale((part.value, part.interval) for _, part in parts),
            },
            guarantees=guarantees,
            signature=signature,
            summary=summary(scores, pairs, level),
            level=level,
            alpha=ALPHA,
            warnings=tuple(dict.fromkeys(note for score in scores for note in score.notes)),
            notes=(),
            version=version("finc-eval"),
        )
    )


def render_private_fragment(
    scores: Sequence[PrivateScore], pairs: Sequence[PairedDifference], level: float, guarantees: Sequence[Guarantee]
) -> str:
    """A table of the scores for a notebook; it takes on the notebook's colors."""
    return (
        environment()
        .get_template("private_fragment.html")
        .render(scores=scores, summary=summary(scores, pairs, level), level=level, guarantees=guarantees)
    )


def summary(scores: Sequence[PrivateScore], pairs: Sequence[PairedDifference], level: float) -> str:
    """What was found, in a few plain sentences."""
    first, sentences = scores[0], []
    if len(scores) == 1:
        sentences.append(
            f"The MMD² between {first.name} and the private records is estimated as {first.value:.3g}, with a "
            f"{percent(level)} interval from {first.interval[0]:.3g} to {first.interval[1]:.3g}."
        )
        if first.interval[0] <= 0:
            sentences.append("That includes zero: the sketch does not tell the two apart.")
    else:
        against = [pair for pair in pairs if pair.first == first.name]
        beaten = [pair.second for pair in against if pair.p_value <= ALPHA]
        tied = [pair.second for pair in against if pair.p_value > ALPHA]
        sentences.append(f"Of {len(scores)} generators, {first.name} has the smallest MMD² from the private records.")
        if beaten:
            sentences.append(f"It is significantly nearer than {', '.join(beaten)} (adjusted p ≤ {ALPHA:g}).")
        if tied:
            sentences.append(f"In that it is not told apart from {', '.join(tied)}.")
    sentences.append(f"The noise of the reference alone hides differences below {first.smallest_detected:.2g}.")
    return " ".join(sentences)
