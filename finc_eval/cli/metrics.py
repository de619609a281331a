"""The verb that scores: metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from finc_eval.cli.options import Device, Extractor, Gen, Json, Ref, Strict, all_embedded
from finc_eval.errors import FincEvalError
from finc_eval.progress import terminal

if TYPE_CHECKING:
    from finc_eval.metrics.suite import Scores


def metrics(
    gen: Gen,
    ref: Ref,
    names: Annotated[
        str, typer.Option("--metrics", metavar="NAME,NAME,…", help="Which: fid, kid, vendi …; a wrong name shows all.")
    ] = "fd,kid,vendi",
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Compute the metrics people know, each in the space its name means, with intervals, floors and signatures.

    --ref may also be an .npz of statistics (mu, sigma), for Fréchet distances.
    """
    from finc_eval.metrics.suite import Scores, evaluate, metric_named
    from finc_eval.tables import print_scores

    wanted = [name.strip() for name in names.split(",") if name.strip()]
    groups: dict[str | None, list[str]] = {}
    for name in wanted:
        groups.setdefault(metric_named(name).extractor if extractor is None else extractor, []).append(name)
    parts: list[Scores] = []
    with terminal() as progress:
        for space, group in groups.items():
            try:
                sets = all_embedded({"gen": gen, "ref": ref}, space, strict, device, progress)
            except FincEvalError as error:
                if len(groups) == 1:
                    raise
                parts.append(Scores(gen, ref, (), dict.fromkeys(group, str(error))))
                continue
            parts.append(evaluate(sets["gen"], sets["ref"], group, device=device, progress=progress))
    scores = tuple(score for part in parts for score in part.scores)
    failures = {name: why for part in parts for name, why in part.failures.items()}
    result = Scores(parts[0].gen, parts[0].ref, scores, failures)
    print(result.to_json()) if as_json else print_scores(result)
    if failures:
        raise FincEvalError("; ".join(f"{name}: {why}" for name, why in failures.items()))
