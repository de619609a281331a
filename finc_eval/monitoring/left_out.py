"""Samples of an evaluation that are left out: not finite, or of the reference; and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.core.words import percent, plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.monitoring.basis import TRACES, Basis
from finc_eval.monitoring.evaluations import EvaluationPart
from finc_eval.monitoring.exchange import Array
from finc_eval.monitoring.followed import Alarm
from finc_eval.monitoring.seen import MOSTLY, SeenSamples
from finc_eval.monitoring.shown import BROKEN, LEFT_OUT, SHOWN, ShownSamples
from finc_eval.monitoring.steps import step_text

Marks = NDArray[np.bool_]
Floats = NDArray[np.floating]

NEW_SEEDS = "alarms hold only if each evaluation has new seeds"


def trace_all(samples: Embeddings, basis: Basis, run: Run) -> Array:
    """Return the traces of all samples of a set, shape (n, 16)."""
    return np.concatenate(
        [np.empty((0, TRACES)), *(basis.trace(each.rows.cpu()) for each in samples.batches(run.portion))]
    )


def to_host(samples: object) -> object:
    """Return a tensor of embeddings on the host, and anything else, such as pictures on a device, as it is."""
    return samples.detach().cpu() if isinstance(samples, torch.Tensor) and samples.ndim == 2 else samples


def split_broken(samples: Any) -> tuple[Any, Marks | None]:
    """Return pictures in memory without those that hold NaN or Inf, and a mark at each of these.

    Embeddings, paths and pictures of whole numbers are returned as they are, with None.
    """
    is_list = isinstance(samples, list | tuple)
    if not is_list and len(getattr(samples, "shape", ())) not in (4, 5):
        return samples, None
    broken = np.array([_is_broken(sample) for sample in samples], np.bool_)
    if not broken.any():
        return samples, None
    kept = np.flatnonzero(np.logical_not(broken)).tolist()
    return [samples[place] for place in kept] if is_list else samples[kept], broken


def _is_broken(picture: Any) -> bool:
    """Return whether a picture, an array or a tensor, holds NaN or Inf."""
    if len(getattr(picture, "shape", ())) < 3 or "float" not in str(getattr(picture, "dtype", "")):
        return False
    return not np.isfinite(float(picture.sum()))  # a sum is finite if its entries are


def find_left_out(samples: Embeddings, basis: Basis, seen: SeenSamples, run: Run) -> tuple[Marks, Marks]:
    """Mark the samples of an evaluation that are not finite, and those of the reference, shape (n,) each."""
    finite = samples.is_finite()
    traces = np.full((samples.n, TRACES), np.nan)
    if finite.any():
        rows = np.flatnonzero(finite)
        traces[rows] = trace_all(samples if len(rows) == samples.n else Subset(samples, rows), basis, run)
        finite = np.isfinite(traces).all(1)  # numbers near the largest of float32 have projections beyond it
    known = np.zeros(samples.n, bool)
    known[finite] = seen.in_reference(traces[finite])
    return ~finite, known


def show_left_out(samples: Embeddings, broken: Marks, known: Marks) -> ShownSamples:
    """Return ids of the samples that `find_left_out` marks, shape (n,) each."""
    marked = {name: marks for name, marks in zip(LEFT_OUT, (broken, known), strict=True) if marks.any()}
    return ShownSamples(
        {}, {name: ((), samples.ids_at(np.flatnonzero(marks)[:SHOWN])) for name, marks in marked.items()}
    )


def say_left_out(step: float, whole: EvaluationPart, steps: Sequence[float], seen: Floats) -> tuple[list[str], bool]:
    """Return what is said of left-out samples of an evaluation, and whether it is left out as a whole.

    Args:
        step: step of the evaluation.
        whole: the evaluation, of all processes.
        steps: steps of all evaluations so far.
        seen: share of the samples that are those of each of these, shape (t,).
    """
    total, name, said = whole.brought, step_text(step), []
    is_same = bool(seen.sum() >= MOSTLY)
    if whole.broken:
        said.append(
            f"step {name}: {whole.broken:,} of {plural(total, 'sample')} {_are(whole.broken)} {BROKEN} (NaN or Inf)"
        )
        said[-1] += f", and {_are(whole.broken)} left out"
    is_reference = whole.known >= MOSTLY * (whole.n + whole.known) and whole.known > 0
    if is_reference:
        said.append(
            f"{whole.known:,} of the {plural(total, 'sample')} of step {name} are those of the reference: this "
            "evaluation is left out, because a set has no distance to itself"
        )
    elif whole.known:
        said.append(
            f"step {name}: {whole.known:,} of {plural(total, 'sample')} {_are(whole.known)} also in the reference, and "
            f"{_are(whole.known)} left out"
        )
    if seen.any() and not is_reference:
        said.append(_say_seen(name, step_text(steps[int(seen.argmax())]), seen))
    if not total:
        said.append(f"step {name} has no samples: this evaluation is left out")
    return said, is_reference or is_same or not whole.n


def _say_seen(name: str, earlier: str, seen: Floats) -> str:
    """Say how many samples of a step are those of earlier steps, by its name and that of the step with most of them."""
    share = min(1.0, float(seen.sum()))
    # 0.94: the share is known to 6 points (`MARKED`).
    part = "the samples" if share > 0.94 else f"about {percent(share)} of the samples"
    is_of_one = np.count_nonzero(seen) == 1
    said = f"{part} of step {name} are those of {'' if is_of_one else 'earlier steps, such as '}step {earlier}"
    if share < MOSTLY:
        return f"{said}: {NEW_SEEDS}"
    return f"{said}: this evaluation is left out; give each checkpoint once, and draw new seeds at each evaluation"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def tell_broken(step: float, whole: EvaluationPart, alarms: Sequence[Alarm]) -> list[Alarm]:
    """Return an alarm of samples that are not finite, if there are such, unless one was raised already."""
    if not whole.broken or any(alarm.name == BROKEN for alarm in alarms):
        return []
    size = f"{whole.broken:,} of {whole.brought:,}"
    text = f"since step {step_text(step)}: samples are {BROKEN} (NaN or Inf), and are left out: {size}"
    return [Alarm(step, BROKEN, text, step, 0.0, whole.broken / whole.brought, (step, step), finding=BROKEN)]


def say_same_seeds(
    step: float, traces: Array, before: NDArray[np.floating], reference: NDArray[np.floating], basis: Basis
) -> str:
    """Say that samples are those of the evaluation before or of the reference, slightly changed; "" if they are not."""
    earlier = {"the evaluation before": before, "the reference": reference}
    same = next((name for name, others in earlier.items() if basis.are_the_same(traces, others)), None)
    if same is None:
        return ""
    said = f"the samples of step {step_text(step)} are those of {same}, in the same order and hardly changed"
    return f"{said}: {NEW_SEEDS}"
