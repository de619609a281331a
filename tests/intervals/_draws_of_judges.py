"""Designs of scores by judges: parts of samples where a model does better or worse."""

from functools import partial

import numpy as np
from _law import Design, Drawn, Holds, PValue

from finc_eval.judges.parts import Division, _compare

PROMISES = {"JudgedPart.interval": Holds(), "JudgedPart.p_value": PValue(together=True)}


def part_of_prompts(rng, prompts, answers, inside, right):
    """A judge who is right or wrong by chance, of some answers to each prompt; a part of the prompts."""
    prompt = np.repeat(np.arange(prompts), answers)
    chance = np.clip(rng.normal(right, 0.15, prompts), 0, 1)[prompt] if answers > 1 else right
    values = (rng.random(len(prompt)) < chance).astype(float)
    division = Division.of_texts(np.where(prompt < inside, "in", "out"))
    found = _compare("judge", "a", "label", values, prompt, division, division.names.index("in"))
    yield Drawn("JudgedPart.interval", found.value, found.interval, right)
    yield Drawn("JudgedPart.p_value", found.p_value)


DESIGNS = (
    Design(
        "a part of 12 of 60 prompts, one answer",
        "small",
        ("JudgedPart.interval", "JudgedPart.p_value"),
        partial(part_of_prompts, prompts=60, answers=1, inside=12, right=0.5),
    ),
    Design(
        "a part of 20 of 60 prompts, four answers",
        "clustered",
        ("JudgedPart.interval", "JudgedPart.p_value"),
        partial(part_of_prompts, prompts=60, answers=4, inside=20, right=0.5),
    ),
    Design(
        "a part of 10 of 200 prompts, most right",
        "rare",
        ("JudgedPart.interval", "JudgedPart.p_value"),
        partial(part_of_prompts, prompts=200, answers=1, inside=10, right=0.9),
    ),
)
