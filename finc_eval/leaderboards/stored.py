"""`Board`: a leaderboard in a folder, with a file for each model, to which models are added."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from finc_eval.core.errors import DataError, IncompatibleError, UsageError, did_you_mean
from finc_eval.core.files.stored import content_of, file_type
from finc_eval.core.kept.folder import KeptFolder
from finc_eval.core.kept.sealed import Sealed
from finc_eval.core.marks import mark_of
from finc_eval.core.places import disk_path
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import Record, settings_from
from finc_eval.core.run import Run
from finc_eval.core.storage import write_together
from finc_eval.core.words import join_words
from finc_eval.embeddings.opened import OpenedSet
from finc_eval.embeddings.opening import label_sets
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.gallery.pictured import Thumbnails
from finc_eval.gallery.thumbnails import kept_thumbnails
from finc_eval.leaderboards.assemble import assemble, check_order
from finc_eval.leaderboards.board import (
    MeasuredModels,
    by_model,
    measure_models,
    open_models,
    read_judged,
    runs_by_model,
)
from finc_eval.leaderboards.entry import ADD_AGAIN, ENTRY, Entry, file_name
from finc_eval.leaderboards.reference import TYPE_NAME, BoardReference
from finc_eval.leaderboards.result import Leaderboard
from finc_eval.leaderboards.settings import LeaderboardOptions, LeaderboardSettings
from finc_eval.numerics.precision import arithmetic
from finc_eval.partitions.settings import REFERENCE
from finc_eval.sketches.opening import SetInput

INDEX, REFERENCE_FILE, ENTRIES = "board.json", "reference.h5", "entries"
LAYOUT = 1


@dataclass(frozen=True)
class Listed(Record):
    """The line of a model in the index."""

    file: str
    checksum: str


@dataclass(frozen=True)
class Index(Record):
    """The index of a board: models by name, so that the order of adding leaves no trace."""

    signature: str
    models: dict[str, Listed]


BOARD_INDEX = Sealed(Index, "leaderboard-index", LAYOUT, "an index", ADD_AGAIN)


class Board:
    """A leaderboard in a folder.

    The folder has `board.json`, the index; `reference.h5`, the reference in kinds, written once; and one file per model
    in `entries`. Of the samples, small pictures are kept that the page shows: see `KEPT_PICTURES`. What is kept of a
    model grows neither with its samples nor with the number of models. Adding a model writes its file and the index.
    Kinds are fixed when the first models are added.

    Args:
        folder: folder of the board; the first `add` makes it.

    Raises:
        UsageError: the folder is a file.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()
        >>> board = fe.Board("my-board")
        >>> board.add({"a": gen[:250]}, ref)
        ('a',)
        >>> board.add({"b": gen[250:]}, ref)
        ('b',)
        >>> board.leaderboard().separable("a", "b")
        False
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = disk_path(folder)
        self._kept = KeptFolder(self.folder, (INDEX, REFERENCE_FILE, ENTRIES))
        if self.folder.is_file():
            raise UsageError(f"{folder} is a file, and a stored board is a folder: pass the folder")

    @property
    def exists(self) -> bool:
        """Truth of "the folder holds a board"."""
        return self._kept.has(INDEX)

    @property
    def index(self) -> Index:
        """Index of the board.

        Raises:
            DataError: the folder does not hold a board, or its index was changed.
        """
        if not self.exists:
            raise DataError(f"{self.folder} is not a stored board: pass the folder of a board, or add models")
        path = self._kept.at(INDEX)
        index, _ = BOARD_INDEX.read(path)
        for name, model in index.models.items():
            if model.file != _entry(name):
                raise DataError(
                    f"{path} lists the file {model.file!r:.100} for {name}, not {_entry(name)}: {ADD_AGAIN}"
                )
        return index

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its models."""
        return tuple(sorted(self.index.models))

    def reference(self) -> BoardReference:
        """Return what its models are measured by."""
        return BoardReference.load(self._kept.at(REFERENCE_FILE))

    @arithmetic()
    def add(
        self,
        models: Mapping[str, object] | Sequence[object],
        ref: object,
        settings: LeaderboardSettings | None = None,
        *,
        extractor: AnyExtractor = None,
        run: Run | None = None,
        **options: Unpack[LeaderboardOptions],
    ) -> tuple[str, ...]:
        """Measure models, and add them; the first call makes the board. Returns the names of those that are new.

        A model that the board has of the same samples stays as it is, so that a command can be repeated after a kill.

        Args:
            models: sets by name, in the forms that `leaderboard` takes, one or more.
            ref: reference set; later calls need the same.
            settings: settings of a new board; a board that exists keeps its own.
            extractor: how to embed sets of samples; default: the extractor of the board.
            run: device, portions and progress of the computation.
            options: fields of `LeaderboardSettings`, which override `settings`. A board that exists refuses
                others than its own.

        Raises:
            UsageError: a model of this name is there with other samples, or a setting is out of range.
            IncompatibleError: the reference, the extractor or a setting does not match the board; the message names it,
                with both values and the file.
            DataError: a set has too few samples, or cannot be read.
        """
        run, sources = Run.of(run), runs_by_model(label_sets(models, "model", taken=REFERENCE))
        if not sources:
            raise UsageError("no model was given to add: pass one as NAME=PATH")
        if not self.exists:
            self._refuse_others()
            chosen = settings_from(LeaderboardSettings, settings, options)
            read_judged(sources, None, None, chosen)
            if chosen.pairs is not None:
                raise UsageError(
                    f"a stored board takes models of other prompts later, so it is not paired by {chosen.pairs!r}: "
                    "rank all models at once (leaderboard without a board), or leave pairs out"
                )
            measured = measure_models(models, ref, chosen, extractor, run, paired=False)
            with self._kept.alone(INDEX):
                if not self.exists:
                    self._keep(measured)
                    return tuple(sources)
        reference = self.reference()
        given = settings_from(LeaderboardSettings, reference.settings, options)
        both = {name: (repr(getattr(given, name)), repr(getattr(reference.settings, name))) for name in options}
        self._refuse_unlike(both, "leave the option out")
        opened, warnings, _ = open_models(sources, ref, reference.settings, run, extractor, [reference.space])
        ref_set = opened[REFERENCE].at_hand
        both = {
            "the extractor of ref": (ref_set.space, reference.space),
            "the digest of ref": (ref_set.digest[:12], reference.digest[:12]),
        }
        self._refuse_unlike(both, "models of a board share one reference; pass that one")
        named = by_model(sources, opened)
        new = self._new_of(named)
        entries = reference.entries(new, ref_set, warnings, run) if new else []
        info, tally, leaves = opened[REFERENCE].info(), reference.tally, reference.tree.leaves
        entries = [entry.with_pictures(info, tally, leaves) for entry in entries]
        with self._kept.alone(INDEX), write_together(and_list=True):
            missing = self._new_of(new)  # another process may have added some of them
            if missing:
                self._write(None, [entry for entry in entries if entry.name in missing])
        return tuple(missing)

    @arithmetic()
    def rank(
        self,
        models: Mapping[str, object] | Sequence[object],
        ref: object,
        settings: LeaderboardSettings | None = None,
        *,
        extractor: AnyExtractor = None,
        run: Run | None = None,
        force: bool = False,
        scores: object = None,
        votes: object = None,
        labels: object = None,
        **options: Unpack[LeaderboardOptions],
    ) -> Leaderboard:
        """Rank models as `leaderboard` does, and keep them, so that others can be added; replaces what was kept.

        Models whose samples are paired are ranked and not kept, because later models may have other prompts. So are
        models with scores or votes, which later models may not have.

        Args:
            models: sets by name, as `leaderboard` takes them, and so the other arguments.
            ref: reference set.
            settings: settings.
            extractor: how to embed sets of samples.
            run: device, portions and progress of the computation.
            force: whether to replace even a board with other models.
            scores: scores of samples by judges, as `leaderboard` takes them.
            votes: votes between the models, as `leaderboard` takes them.
            labels: labels of people, as `leaderboard` takes them.
            options: fields of `LeaderboardSettings`, which override `settings`.

        Raises:
            UsageError: the board has other models; see `leaderboard` for the rest.
        """
        named = label_sets(models, "model", taken=REFERENCE)
        place = self.folder / REFERENCE_FILE
        if not (force or self.exists) and place.exists() and file_type(place) != TYPE_NAME:
            raise UsageError(
                f"{self.folder} has a file {REFERENCE_FILE}, which does not belong to a board: choose another folder"
            )
        if not force and self.exists and (others := [name for name in self.names if name not in named]):
            raise UsageError(
                f"{self.folder} has {join_words(others)}, which this command does not measure: add models to it "
                f"(finc-eval leaderboard add {shlex.quote(str(self.folder))} NAME=PATH), or choose another folder"
            )
        chosen = settings_from(LeaderboardSettings, settings, options)
        judged = read_judged(named, scores, votes, chosen, labels)
        measured = measure_models(named, ref, chosen, extractor, Run.of(run), judged=judged)
        with self._kept.alone(INDEX):
            if measured.is_paired or judged is not None:
                (self.folder / INDEX).unlink(missing_ok=True)
            else:
                self._keep(measured)
        return measured.board

    def remove(self, names: Sequence[str]) -> None:
        """Remove models, with their files.

        Raises:
            UsageError: a name is not on the board.
        """
        with self._kept.alone(INDEX):
            index, files = self.index, []
            listed = {_entry(name) for name in index.models}
            for name in names:
                file = self._kept.at(_entry(name))
                # A kill leaves a file that the index does not list: who repeats the command finishes it.
                if name not in index.models and (_entry(name) in listed or not file.exists()):
                    raise UsageError(f"{name!r} is not on the board{did_you_mean(name, index.models)}")
                files.append(file)
            kept = {name: model for name, model in index.models.items() if name not in names}
            if len(kept) < len(index.models):
                BOARD_INDEX.write(self.folder / INDEX, replace(index, models=kept))
            for file in files:
                file.unlink(missing_ok=True)

    def entries(self) -> list[Entry]:
        """Read its models, in the order in which they were added.

        Raises:
            DataError: a file is missing, damaged, or not the file that the index lists.
            IncompatibleError: a file belongs to another board, or has a number that this version computes differently.
        """
        index, reference = self.index, self.reference()
        return [self._entry(name, index, reference) for name in index.models]

    def _entry(self, name: str, index: Index, reference: BoardReference) -> Entry:
        """Read a model of the board; see `entries` for its errors."""
        path = self._kept.at(_entry(name))
        entry, checksum = ENTRY.read(path)
        entry.check_belongs(reference.signature, str(path))
        reference.check_counts(entry, str(path))
        if (entry.name, checksum) != (name, index.models[name].checksum):
            raise DataError(f"{path} is not the file that {INDEX} lists for {name}: add the model again")
        return entry

    def leaderboard(self, rank_by: str | None = None) -> Leaderboard:
        """Rank the models of the board.

        Args:
            rank_by: number that orders the rows; default: the board's number.

        Raises:
            UsageError: there is not a model, or the board does not have that number.
        """
        entries, reference = self.entries(), self.reference()
        if not entries:
            raise UsageError(f"{self.folder} has lost all its models: add one")
        asked, metrics = reference.settings, reference.settings.metrics
        command = ["finc-eval", "leaderboard", "render", self.folder.resolve().name]
        if rank_by is not None:
            check_order(rank_by, metrics, f"make another board with the metrics {','.join((*metrics, rank_by))}")
            asked = replace(asked, rank_by=rank_by)
            command += ["--rank-by", rank_by]
        made = replace(reference.provenance, command=Provenance.here().command or shlex.join(command))
        kept, notes = _read_pictures(reference, entries)
        with content_of(self.folder, ADD_AGAIN):
            board = assemble(reference, entries, asked, ())
        return replace(board, warnings=(*board.warnings, *notes), provenance=made, kept=kept)

    def _keep(self, measured: MeasuredModels) -> None:
        """Write a new board."""
        reference = measured.reference
        entries = [replace(entry, warnings=measured.warnings) for entry in measured.entries]
        info, tally, leaves = reference.info, reference.tally, reference.tree.leaves
        pictured = [entry.with_pictures(info, tally, leaves) for entry in entries]
        with write_together():
            self._write(reference.with_names(entries, measured.sets).with_pictures(), pictured)

    def _write(self, reference: BoardReference | None, entries: Sequence[Entry]) -> None:
        models = {} if reference else dict(self.index.models)
        signature = str(reference.signature) if reference else self.index.signature
        if reference:
            reference.save(self._kept.at(REFERENCE_FILE))
        for entry in entries:
            file = _entry(entry.name)
            models[entry.name] = Listed(file, ENTRY.write(self._kept.at(file), entry.shared()))
        # The index last, in one step: a kill just before leaves the board as it was, and files that nobody lists.
        BOARD_INDEX.write(self.folder / INDEX, Index(signature, models))

    def _refuse_others(self) -> None:
        """Refuse to make a board in a folder that has other files."""
        if (mark_of(self.folder / f"{Leaderboard.type_name}.json") or "").startswith(f"{Leaderboard.type_name} "):
            raise UsageError(
                f"{self.folder} has a board that later models cannot be added to, such as with scores, votes or pairs: "
                "rank all models at once (finc-eval leaderboard), or name a new folder"
            )
        self._kept.check_own()

    def _new_of(self, models: Mapping[str, Sequence[OpenedSet[SetInput]]]) -> dict[str, Sequence[OpenedSet[SetInput]]]:
        """Return the models that the board lacks or has in a damaged file; refuse names that have other samples."""
        index, reference, new = self.index, self.reference(), dict(models)
        for name in [name for name in models if name in index.models]:
            try:
                entry = self._entry(name, index, reference)
            except DataError:
                continue
            if [run.info.digest for run in entry.runs] != [run.at_hand.digest for run in models[name]]:
                raise UsageError(f"{name} is on the board with other samples: remove it first, or use another name")
            del new[name]
        return new

    def _refuse_unlike(self, fields: Mapping[str, tuple[str, str]], advice: str) -> None:
        """Refuse fields whose value of a call and value of the board differ."""
        for field, (here, there) in fields.items():
            if here != there:
                where = self.folder / REFERENCE_FILE
                raise IncompatibleError(
                    f"{field} is {here} here and {there} in {where}: {advice}, or make another board"
                )


def _entry(name: str) -> str:
    """Return the file of a model, relative to its board."""
    return f"{ENTRIES}/{file_name(name)}"


def _read_pictures(reference: BoardReference, entries: Sequence[Entry]) -> tuple[dict[str, Thumbnails], list[str]]:
    """Return the small pictures of a board, by label and id, and what is wrong with them, in sentences."""
    pictures = {entry.name: entry.pictures for entry in entries}
    beside = [picture for entry in entries for picture in entry.pictures_ref]
    pictures[REFERENCE] = reference.pictures if reference.pictures is None else (*reference.pictures, *beside)
    kept, notes = dict[str, Thumbnails](), []
    for label, known in pictures.items():
        if known is not None:
            kept[label], note = kept_thumbnails({picture.id: picture.stated for picture in known}.values())
            notes += [f"{label}: {note}: add the model again"] if note else []
    return kept, notes
