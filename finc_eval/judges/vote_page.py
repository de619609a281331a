"""A page of blind pairs to vote on: one file without a server, which shows no names and saves votes as CSV."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import PurePosixPath

import numpy as np
from markupsafe import Markup

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, UsageError, check_count, check_seed
from finc_eval.core.files.csv_text import FORMULA_LETTERS, MAX_CELL_LETTERS
from finc_eval.core.words import join_words, plural, spell_controls
from finc_eval.gallery.thumbnails import Thumbnail, moving_picture, thumbnail
from finc_eval.judges.votes import COLUMNS, PAIR, well_formed
from finc_eval.report.pages import environment, hash_of
from finc_eval.samples.clips import Clip
from finc_eval.samples.files import NoImagesError
from finc_eval.samples.images import ANIMATION
from finc_eval.samples.opening import open_source
from finc_eval.samples.source import Samples, Source

CLIP = Clip(frames=24, stride=1, windows=1, short="hold", fps=8.0)
"""Frames of a video that the page plays: three seconds from its middle, 8 frames a second."""

MAX_EDGE = 8192  # pixels of the longer edge of a picture on the page: screens of 8K have 7680

TYPE_NAME = "vote"  # first word of the mark of the page


@dataclass(frozen=True)
class Ballot:
    """A pair of samples to choose from."""

    prompt: str  # the prompt, or the id that both samples have
    left: tuple[str, int]  # model on the left, and the number of its sample
    right: tuple[str, int]

    @property
    def names(self) -> tuple[str, str]:
        """Models on the left and on the right."""
        return self.left[0], self.right[0]


def vote_page(models: Mapping[str, Samples], number: int = 100, seed: int = 0, edge: int = 512) -> str:
    """Return a page of blind pairs of samples of the same prompt, or of the same id.

    Args:
        models: samples of each model by name, two models or more.
        number: number of pairs at most.
        seed: random seed of the pairs, their sides and their order.
        edge: longer edge of a picture in pixels, from 16 to `MAX_EDGE`; smaller ones are not enlarged in the file.

    Raises:
        UsageError: fewer than two models are given, or a number is out of range.
        DataError: two models have no prompt and no id in common, or a sample cannot be read.
    """
    if len(models) < 2:
        raise UsageError(f"a vote needs two models, got {plural(len(models), 'model')}: write a/ b/")
    check_count("number", number)
    check_seed(seed)
    check_count("edge", edge, least=16, most=MAX_EDGE)
    sources = {name: _open(samples) for name, samples in models.items()}
    ballots = draw_ballots({name: _by_prompt(source) for name, source in sources.items()}, number, seed)
    pictures, places = _pictures(sources, ballots, edge, seed)
    salt = seed & 0xFFFFFFFF
    width = max(len(json.dumps(ballot.names).encode()) for ballot in ballots)
    page = sha256_of(json.dumps([ballot.names for ballot in ballots] + [ballot.prompt for ballot in ballots]))[:8]
    several = len({(ballot.prompt, *sorted(ballot.names)) for ballot in ballots}) < len(ballots)
    trials = [
        [
            ballot.prompt,
            places[ballot.left],
            places[ballot.right],
            encode(ballot.names, salt + place, width),
            # What tells apart the pairs of one prompt, and the prompt as it is shown if that is not its text.
            f"{page}-{place}" if several else "",
            *([shown] if (shown := spell_controls(ballot.prompt)) != ballot.prompt else []),
        ]
        for place, ballot in enumerate(ballots)
    ]
    data: dict[str, object] = {
        "columns": [*COLUMNS, PAIR] if several else COLUMNS,
        "formula": FORMULA_LETTERS,
        "salt": salt,
        "pictures": [picture.uri for picture in pictures],
        "trials": trials,
    }
    data["id"] = sha256_of(json.dumps(data))[:16]
    return _render(data)


def _open(samples: Samples) -> Source:
    try:
        source = open_source(samples)
    except NoImagesError:
        return open_source(samples, clip=CLIP)
    is_moving = next(iter(source.take([0]))).error == ANIMATION
    return open_source(samples, clip=CLIP) if is_moving else source


def _by_prompt(source: Source) -> dict[str, list[int]]:
    """Return the numbers of the samples of each prompt, or else of each id without its folder and ending."""
    prompts = source.prompts or [""] * len(source.ids)
    found: dict[str, list[int]] = {}
    for number, (prompt, id) in enumerate(zip(prompts, source.ids, strict=True)):
        text = well_formed(prompt or PurePosixPath(id).stem)
        if len(text) > MAX_CELL_LETTERS:
            raise DataError(
                f"the prompt of {id} of {source.name} has {len(text):,} letters, above the {MAX_CELL_LETTERS:,} of a "
                "cell of CSV, so that its votes could not be read: shorten it"
            )
        found.setdefault(text, []).append(number)
    return found


def draw_ballots(samples: Mapping[str, Mapping[str, Sequence[int]]], number: int, seed: int) -> list[Ballot]:
    """Draw pairs of two models on one prompt, at random, with random sides, as equally from all pairs of models.

    Args:
        samples: numbers of the samples by model and prompt.
        number: number of pairs at most.
        seed: random seed.
    """
    rng, waiting = np.random.default_rng(seed), []
    for first, second in combinations(samples, 2):
        pairs = [
            (prompt, row, other)
            for prompt in sorted(samples[first].keys() & samples[second].keys())
            for row, other in zip(samples[first][prompt], samples[second][prompt], strict=False)
        ]
        waiting.append([(first, second, *pairs[place]) for place in rng.permutation(len(pairs))])
    if empty := [pair for pair, drawn in zip(combinations(samples, 2), waiting, strict=True) if not drawn]:
        raise DataError(
            f"{join_words(empty[0])} have no prompt and no name of a sample in common: give both the same names of "
            "files, or prompts in their metadata"
        )
    found = [drawn[turn] for turn in range(max(map(len, waiting))) for drawn in waiting if turn < len(drawn)][:number]
    ballots = []
    for place in rng.permutation(len(found)):
        first, second, prompt, sample, other = found[place]
        sides = [(first, sample), (second, other)]
        left = int(rng.integers(2))
        ballots.append(Ballot(prompt, sides[left], sides[1 - left]))
    return ballots


def _pictures(
    sources: Mapping[str, Source], ballots: Sequence[Ballot], edge: int, seed: int
) -> tuple[list[Thumbnail], dict[tuple[str, int], int]]:
    """Return the pictures in a random order, and the place of each sample's picture."""
    wanted = sorted({side for ballot in ballots for side in (ballot.left, ballot.right)})
    order = np.random.default_rng(seed + 1).permutation(len(wanted)).tolist()
    places = {wanted[row]: place for place, row in enumerate(order)}
    found: dict[int, Thumbnail] = {}
    for name, source in sources.items():
        numbers = sorted(number for model, number in wanted if model == name)
        for number, sample in zip(numbers, source.take(numbers), strict=True):
            if sample.pixels is None:
                raise DataError(
                    f"the sample {sample.id} of {name} cannot be read ({sample.error}): take it out of all models"
                )
            is_clip = sample.pixels.ndim > 3 and len(sample.pixels) > 1
            still = sample.pixels if sample.pixels.ndim == 3 else sample.pixels[0]
            fps = CLIP.fps or 1.0
            made = moving_picture(sample.pixels, fps, edge) if is_clip else thumbnail(still, edge)
            found[places[name, number]] = made
    return [found[place] for place in range(len(found))], places


def encode(names: Sequence[str], salt: int, width: int) -> str:
    """Return names that a page does not show: padded to one width, and mixed with numbers that follow from a salt.

    This hides names from readers of a page, and is not encryption.
    """
    data = json.dumps(list(names)).encode().ljust(width)
    return base64.b64encode(bytes(byte ^ mask for byte, mask in zip(data, _masks(salt, width), strict=True))).decode()


def _masks(salt: int, width: int) -> list[int]:
    """Return bytes of a linear congruential generator of 32 bits (Numerical Recipes), which JavaScript repeats."""
    state, found = (salt * 2654435761 + 1) & 0xFFFFFFFF, []
    for _ in range(width):
        state = (1664525 * state + 1013904223) & 0xFFFFFFFF
        found.append(state >> 24)
    return found


def _render(data: Mapping[str, object]) -> str:
    made = environment()
    style, script = (Markup(made.get_template(f"judges/vote.{kind}").render().strip()) for kind in ("css", "js"))
    # In JSON, a control character and its escape are the same.
    text = spell_controls(json.dumps(data, ensure_ascii=False)).replace("<", "\\u003c")
    return made.get_template("judges/vote.html").render(
        style=style,
        script=script,
        style_hash=hash_of(style),
        script_hash=hash_of(script),
        data=Markup(text),
        mark=f"{TYPE_NAME} {data['id']}",
    )
