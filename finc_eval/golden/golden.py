"""`Golden`: golden pictures night by night, with their floor in a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np

from finc_eval.core.errors import UsageError
from finc_eval.core.provenance import Provenance
from finc_eval.core.storage import alone_with
from finc_eval.core.words import join_words, plural
from finc_eval.gallery.thumbnails import thumbnail
from finc_eval.golden.floor import MAX_TEXT, Floor, PairRow, add_lines, content_of, matching, place_of_floor, read_floor
from finc_eval.golden.judging import AgainstPast, JudgedNight, judge_night
from finc_eval.golden.measured import SOUND, MeasuredPair, measure_night
from finc_eval.golden.nights import LEAST_PAST, MEASURES
from finc_eval.golden.pictures import Matched, match_pictures
from finc_eval.golden.result import GoldenPair, Light, Night, SeenNight
from finc_eval.golden.sentences import tell_night

EDGE = 128  # pixels of the longer edge of the pictures of a pair: ten pairs are a page of about 150 kB


class Golden:
    """Golden pictures, night by night: a few pairs, judged from the first night on.

    A file, the floor, keeps a row of measures for each pair and night. The first night can only tell what pairs show by
    themselves. From 8 nights on, small changes are seen, too. See "Golden pictures" in the documentation.

    Args:
        path: file of the floor, such as "floor.jsonl"; the first night makes it.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> golden = {"p07": np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)}
        >>> night = fe.Golden("nights.jsonl").add({"p07": golden["p07"] * 0}, golden, machine="h200")
        >>> night.verdict, night.sentence
        ('red', 'Red: p07 is black.')
        >>> night.pairs[0].shows
        'black'
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path

    def add(self, gen: Any, ref: Any, machine: str | None = None) -> Night:
        """Judge the pictures of a night by the nights before, and add it to the floor.

        Args:
            gen: pictures of tonight: a folder, or any other set that `open_source` takes; a list of pictures of Pillow,
                uint8 arrays, arrays of floats in [0, 1], or paths; a dictionary of these by id; or one picture.
            ref: golden pictures with the same ids.
            machine: name of the machine that made tonight's pictures. Nights are compared with those of their machine.

        Raises:
            UsageError: there are more than 1,000 pictures, or the machine is not a name.
            DataError: no id is in both, a golden picture cannot be read, or the file is not a floor.
        """
        machine = _checked(machine)
        matched = match_pictures(gen, ref)
        tonight, name_of_run = measure_night(matched)
        floor_path = place_of_floor(self.path)
        with alone_with(floor_path):
            content = content_of(floor_path)
            floor = read_floor(content, str(self.path))
            judged = judge_night(floor, tonight, machine)
            verdict = _verdict(judged, tonight, matched)
            time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            rows = _rows(tonight, judged, time, machine, verdict)
            add_lines(floor_path, content, [row.to_line() for row in rows])
        told = tell_night(floor, matched, tonight, judged, verdict, name_of_run)
        return _result(floor, tonight, judged, rows, told)

    def accept(self, night: str, machine: str | None = None) -> str:
        """Accept a night: what it showed is known from now on. Return a sentence on what was accepted.

        Nights of the machine that came just before and were not green are accepted, too: they are of the same change.

        Args:
            night: a night, or the beginning of its time, such as "2026-11-27".
            machine: machine of the night; default: all machines.

        Raises:
            UsageError: there is not such a night, or one of its pairs is red by itself.
            DataError: the file is not a floor.
        """
        machine = _checked(machine)
        floor_path = place_of_floor(self.path)
        with alone_with(floor_path):
            content = content_of(floor_path)
            floor = read_floor(content, str(self.path))
            nights = (
                [floor.nights[number] for number in matching(floor.nights, night, machine)] if night.strip() else []
            )
            usable = any(not past.is_broken for past in nights)
            if not nights:
                # 5: nights that a message names.
                known = join_words([past.name for past in floor.nights[-5:]]) or "none"
                raise UsageError(f"{self.path} has no night {night!r}: its last nights are {known}")
            if not usable:
                bad = next(row for row in nights[0].rows.values() if row.shows not in SOUND)
                raise UsageError(
                    f"the night {nights[0].name} has pairs that are red by themselves, such as {bad.id}, and no night "
                    "makes these known: if the new pictures are right, make them the golden ones"
                )
            line = _acceptance(night, machine)
            add_lines(floor_path, content, [line])
        after = read_floor(b"\n".join([content, line.encode()]), str(self.path)).nights
        chosen = [
            past.name for past, old in zip(after, floor.nights, strict=True) if past.is_accepted > old.is_accepted
        ]
        if not chosen:
            return "Nothing changed: these nights were accepted before."
        return f"Accepted: {plural(len(chosen), 'night')}, from {chosen[0]} to {chosen[-1]}. Known from now on."


def _acceptance(night: str, machine: str | None) -> str:
    return json.dumps({"accept": night, "machine": machine})


def _checked(machine: str | None) -> str | None:
    if machine is not None and not (isinstance(machine, str) and machine.strip() and len(machine) <= MAX_TEXT):
        raise UsageError(f"machine must be the name of a machine, got {machine!r:.100}: leave it out if it is unknown")
    return machine


def _is_unsure(pair: MeasuredPair, against: AgainstPast | None) -> bool:
    """Return whether a pair cannot be recognized, while too few nights are known to tell whether that is usual."""
    return pair.shows == "unclear" and against is not None and against.known < LEAST_PAST


def _verdict(judged: JudgedNight, tonight: Sequence[MeasuredPair], matched: Matched) -> Light:
    """Return the verdict with what the nights before cannot tell: missing pictures, and the first nights."""
    unsure = any(_is_unsure(pair, against) for pair, against in zip(tonight, judged.pairs, strict=True))
    return "amber" if judged.verdict == "green" and (unsure or matched.missing) else cast(Light, judged.verdict)


def _rows(
    tonight: Sequence[MeasuredPair], judged: JudgedNight, name: str, machine: str | None, verdict: str
) -> list[PairRow]:
    """Return the rows of a night."""
    mean = judged.mean
    all_p, all_beyond = (np.nan, False) if mean is None else (mean.p, bool(mean.beyond))
    return [
        PairRow(
            name,
            machine,
            pair.id,
            pair.shows,
            pair.values,
            pair.gen.digest,
            pair.ref.digest,
            np.nan if against is None else against.p,
            all_p,
            against is not None and bool(against.beyond),
            all_beyond,
            verdict,
        )
        for pair, against in zip(tonight, judged.pairs, strict=True)
    ]


def _result(
    floor: Floor, tonight: Sequence[MeasuredPair], judged: JudgedNight, rows: Sequence[PairRow], told: dict[str, str]
) -> Night:
    """Return the verdict with its pairs and the history."""
    verdict = cast(Light, rows[0].verdict)
    pairs = tuple(_pair(pair, against) for pair, against in zip(tonight, judged.pairs, strict=True))
    seen = [
        SeenNight(past.name, past.machine, cast(Light, past.verdict), _psnr(list(past.rows.values())))
        for past in floor.nights[1 - 365 :]  # nights of the history that a result has
    ]
    return Night(
        verdict,
        pairs,
        rows[0].night,
        rows[0].machine,
        told,
        (*seen, SeenNight(rows[0].night, rows[0].machine, verdict, _psnr(rows))),
        pictures={
            pair.id: tuple(thumbnail(shot.pixels, EDGE) for shot in (pair.ref, pair.gen) if shot.pixels is not None)
            for pair in tonight
        },
        provenance=Provenance.here("cpu"),
    )


def _psnr(rows: Sequence[PairRow]) -> dict[str, float]:
    return {row.id: round(float(row.values[0]), 2) for row in rows if row.values is not None}


def _pair(pair: MeasuredPair, against: AgainstPast | None) -> GoldenPair:
    """Return a pair of the result."""
    unsure = _is_unsure(pair, against)
    verdict = "red" if pair.is_broken else "amber" if unsure else "green" if against is None else against.verdict
    sentence = pair.phrase
    if against is not None and against.verdict != "green":
        sentence += ", beyond all known nights" if against.beyond else ", and has changed by ranks"
    numbers = {} if pair.values is None else dict(zip(MEASURES, map(float, pair.values), strict=True))
    p = None if against is None or np.isnan(against.p) else against.p
    return GoldenPair(
        pair.id, cast(Light, verdict), pair.shows, sentence, numbers, p, 0 if against is None else against.known
    )
