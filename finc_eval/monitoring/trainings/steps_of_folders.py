"""Steps of a training: from a folder of steps, from a pattern, or by hand; and two trainings on a command line."""

from __future__ import annotations

import glob
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from finc_eval.core.errors import DataError, UsageError, check_finite
from finc_eval.core.places import is_url
from finc_eval.core.words import join_first
from finc_eval.monitoring.steps import order_steps, step_text
from finc_eval.samples.files import is_hidden

FILES = (".npy", ".npz", ".h5", ".hdf5", ".zip", ".tar", ".parquet")  # files that have the samples of a step


def steps_of(training: str | Path | Mapping[float, object], given: Collection[str] = ()) -> dict[float, object]:
    """Return the samples of each step of a training, in ascending order.

    Args:
        training: a folder that has a folder or a file of samples for each step; a pattern such as "run-a/ckpt-*"; or
            samples by step.
        given: steps that are given by hand, as NAME=N; see `order_steps`.

    Raises:
        UsageError: a step is not a number, or no name says it.
        DataError: the folder is missing, or has no steps.
    """
    if isinstance(training, Mapping):
        return dict(sorted((check_finite("step", step), samples) for step, samples in training.items()))
    if not isinstance(training, str | Path):
        raise UsageError(
            f"a training must be a folder or samples by step, got {type(training).__name__}: give {{step: samples}}"
        )
    return {**_order(_list_steps(Path(training)), given)}


def _order(paths: Sequence[str], given: Collection[str]) -> dict[float, str]:
    """Return paths by their step; steps that are given by hand for other paths are left out."""
    return order_steps(paths, [step for step in given if any(step.rpartition("=")[0] in path for path in paths)])


def _list_steps(path: Path) -> list[str]:
    """Return the folders in a folder, or else the files of samples, or what a pattern fits."""
    if path.is_dir():
        every = sorted(entry for entry in path.iterdir() if not is_hidden(entry.name))
        names = [str(entry) for entry in every if entry.is_dir()]
        names = names or [str(entry) for entry in every if entry.suffix.lower() in FILES]
    else:
        names = sorted(glob.glob(str(path)))  # noqa: PTH207 (Path.glob takes no absolute pattern)
    if not names and not path.is_dir():
        what = f"nothing fits {path}" if glob.has_magic(str(path)) else f"{path} is not a folder"
        raise DataError(f"{what}: check the path")
    if not names:
        raise DataError(
            f"{path} has no folder or file of samples: give a folder that has one for each step, such as "
            f"{path / 'step-1000'}"
        )
    return names


def named_trainings(arguments: Sequence[str], given: Collection[str] = ()) -> dict[str, dict[float, object]] | None:
    """Return two trainings by name from arguments NAME=FOLDER; None if the arguments are the steps of one training.

    An argument that exists is a step, also with "=" in its name, as in "epoch=1-step=1000".

    Args:
        arguments: arguments of the command line.
        given: steps that are given by hand, as NAME=N, of either training.

    Raises:
        UsageError: there are not two trainings, or a step given by hand fits neither.
        DataError: a folder is missing, or has no steps.
    """
    parts = [argument.partition("=") for argument in arguments]
    names = [name for name, _, _ in parts]
    are_named = [
        bool(name and path) and not is_url(argument) and not Path(argument).exists()
        for argument, (name, _, path) in zip(arguments, parts, strict=True)
    ]
    are_two = all(are_named) and len({*names}) == len(names) == 2
    # A folder behind "=" is of a training; names of steps that do not exist have none.
    is_meant = any(is_named and Path(path).is_dir() for is_named, (_, _, path) in zip(are_named, parts, strict=True))
    if not are_two and not is_meant:
        return None
    if not are_two:
        raise UsageError(f"two trainings are compared, got {join_first(arguments, 3)}: give a=run-a/ b=run-b/")
    listed = {name: _list_steps(Path(path)) for name, _, path in parts}
    for step in given:
        wanted = step.rpartition("=")[0]
        if not any(wanted in path for paths in listed.values() for path in paths):
            raise UsageError(f"--step {step} fits no step of either training: name one of {listed[names[0]][0]}, …")
    return {name: {**_order(paths, given)} for name, paths in listed.items()}


def pair_steps(fixed: str | None, steps: Collection[float], given: Collection[str] = ()) -> dict[float, object]:
    """Return the pictures of fixed prompts of each step, from a folder of steps; nothing without a folder.

    Args:
        fixed: the folder.
        steps: steps of the training.
        given: steps that are given by hand, as NAME=N.

    Raises:
        UsageError: none of its steps is a step of the training.
    """
    found = {} if fixed is None else steps_of(fixed, given)
    if found and not {*found} & {*steps}:
        raise UsageError(
            f"--fixed {fixed} has no pictures of any step that is followed: it has the step "
            f"{step_text(min(found))}, and the training {', '.join(map(step_text, sorted(steps)[:3])) or 'none'}"
        )
    return {step: found[step] for step in steps if step in found}
