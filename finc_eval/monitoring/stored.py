"""`StoredMonitor`: the state of a monitor, and its file."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import numpy as np

from finc_eval.core.errors import check_fraction, check_seed
from finc_eval.core.files.stored import existing_file
from finc_eval.core.files.writing import new_file
from finc_eval.core.record import plain, structure
from finc_eval.core.run import Run
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.monitoring.basis import TRACES, Basis
from finc_eval.monitoring.columns import FollowedColumn, names_of_things, say_unchecked
from finc_eval.monitoring.evaluations import Evaluations
from finc_eval.monitoring.exchange import Array
from finc_eval.monitoring.findings import Follows
from finc_eval.monitoring.fixed.prompts import FixedPrompts
from finc_eval.monitoring.followed import FLAGS, SHARES, Alarm, CopiesAtStep
from finc_eval.monitoring.seen import SeenRepeats, SeenSamples
from finc_eval.monitoring.shown import Strips

TYPE, LAYOUT = "monitor", 9  # type and layout of the file of a monitor


class StoredMonitor:
    """State of a monitor: what is held fixed, all evaluations, alarms, and what is shown; and its file."""

    alpha: float
    seed: int
    space: str
    prompts: frozenset[str]
    basis: Basis
    columns: list[FollowedColumn]
    history: Evaluations
    seen: SeenSamples
    repeats: SeenRepeats
    strips: Strips
    copies: list[CopiesAtStep]
    follows: Follows
    warnings: list[str]
    fixed_prompts: FixedPrompts | None
    _raised: list[Alarm]
    _described: tuple[tuple[int, int], list[Alarm]]
    _traces: Array
    _extractor: AnyExtractor
    _text: str | None
    _run: Run

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all followed things, shares before scores."""
        return names_of_things(self.basis.names, SHARES, self.columns)

    def save(self, path: str | Path) -> None:
        """Write the whole state into a file, which appears when it is whole; `load` goes on from it.

        Args:
            path: file to write, such as monitor.h5.
        """
        with new_file(path, TYPE, LAYOUT) as file:
            file.header["monitor"] = {"alpha": self.alpha, "seed": self.seed, "space": self.space}
            file.header["columns"] = [plain(one) for one in self.columns]
            file.header["alarms"] = [plain(one) for one in self._raised]
            file.header["copies"] = [plain(one) for one in self.copies]
            file.header["follows"] = self.follows
            file.header["warnings"] = self.warnings
            file.texts("prompts", sorted(self.prompts))
            self.basis.write(file)
            self.history.write(file)
            self.seen.write(file)
            self.repeats.write(file)
            self.strips.write(file)
            if self.fixed_prompts is not None:
                self.fixed_prompts.write(file)

    @classmethod
    def load(
        cls, path: str | Path, *, extractor: AnyExtractor = None, text: str | None = None, run: Run | None = None
    ) -> Self:
        """Read a monitor that `save` wrote.

        Args:
            path: the file.
            extractor: how to embed samples that are not embedded.
            text: how to embed prompts.
            run: device, portions, threads and progress.

        Raises:
            DataError: the file is missing, damaged, or not a monitor.
        """
        found = cls.__new__(cls)
        found._extractor, found._text, found._run = extractor, text, Run.of(run)
        with existing_file(path, TYPE, LAYOUT) as file:
            header = file.header["monitor"]
            found.alpha, found.seed = check_fraction("alpha", header["alpha"]), check_seed(header["seed"])
            found.space, found.prompts = str(header["space"]), frozenset(file.texts("prompts").all())
            found._raised = [structure(Alarm, one, str(path)) for one in file.header["alarms"]]
            found._described = (0, 0), []
            found.copies = [structure(CopiesAtStep, one, str(path)) for one in file.header["copies"]]
            found.follows = {str(one): (str(a), str(b)) for one, (a, b) in file.header["follows"].items()}
            found.warnings, found._traces = [str(one) for one in file.header["warnings"]], np.empty((0, 0))
            found.basis = Basis.read(file)
            found.columns = [structure(FollowedColumn, one, str(path)) for one in file.header.get("columns", [])]
            shares = len(found.basis.names) + len(SHARES) + len(FLAGS) + sum(one.is_flag for one in found.columns)
            found.history = Evaluations.read(file, len(found.names), shares, found.basis.phi.size)
            found.seen = SeenSamples.read(file, found.history.count, TRACES)
            found.repeats = SeenRepeats.read(file, TRACES)
            found.strips, found.fixed_prompts = Strips.read(file), FixedPrompts.read(file)
            found.warnings += [*found.strips.notes, *say_unchecked(found.columns)]
        return found
