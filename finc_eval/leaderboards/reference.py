"""`BoardReference`: what all models of a board are measured by, fixed when the board is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from finc_eval.comparison.findings import Differences, differences_between
from finc_eval.core.errors import DataError
from finc_eval.core.files.stored import existing_file
from finc_eval.core.files.writing import new_file
from finc_eval.core.progress import Stage, silent
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import plain, structure
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.core.storage import check_readable
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opened import OpenedSet, Sets
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.estimates.error_source import REF
from finc_eval.estimates.estimate import Estimate
from finc_eval.leaderboards.columns import SHARES
from finc_eval.leaderboards.entry import ADD_AGAIN, Entry, TrainingRun, shareable
from finc_eval.leaderboards.measures import Measure, Measuring
from finc_eval.leaderboards.own_shares import own_shares
from finc_eval.leaderboards.pictures import KeptPicture, pictures_to_keep
from finc_eval.leaderboards.settings import LeaderboardSettings
from finc_eval.leaderboards.shares import estimate_unmatched, estimate_unmatched_within
from finc_eval.leaderboards.standings import run_label
from finc_eval.leaderboards.yardsticks import Yardsticks
from finc_eval.measures.frechet import has_full_rank
from finc_eval.measures.registry import get_metric
from finc_eval.naming.columns import registered_columns
from finc_eval.naming.evidence import Name
from finc_eval.naming.measured import measure_pictures
from finc_eval.partitions.answer import kind_id, names_of_nodes, node_tallies
from finc_eval.partitions.blocks import Pairing, designs
from finc_eval.partitions.counts import Counted, Examples, count
from finc_eval.partitions.kind_tree import KindTree, Tree
from finc_eval.partitions.settings import MAIN_LEVEL, REFERENCE
from finc_eval.partitions.tests import Tally
from finc_eval.partitions.values import ValueCounts
from finc_eval.sketches.opening import SetInput

TYPE_NAME = "leaderboard-reference"
LAYOUT = 3

COUNT_REFERENCE = Stage("count the reference's kinds", cost=0.1)
FIND_FAULTS = Stage("look for faults", cost=1.4)
MEASURE, COUNT_MODELS = Stage("compute metrics", cost=1.3), Stage("count the models' kinds", cost=0.1)
"""Names of passes in the progress."""

DEFAULT_METRICS = ("fd", "kid")
"""Metrics of a board for which none was named: fd where a model has an interval by it, and kid where one has none."""

EFFECTS = ("effects", "even", "within")  # arrays of a tally with a number for each node, besides its members


@dataclass(frozen=True, eq=False)
class BoardReference:
    """A reference divided into kinds, and the settings that all models are measured with."""

    kinds: KindTree  # the kinds, at most `MAIN_LEVEL` at the leaves
    tally: Tally  # numbers of samples of the reference of each node of the tree
    examples: tuple[Examples, ...]  # samples of it that show each node
    names: Mapping[int, Name]  # names of nodes, by number
    info: SetInfo
    digest: str
    space: str
    settings: LeaderboardSettings  # settings, with the metrics that the board has
    provenance: Provenance
    by: ValueCounts | None = None  # its samples by the values of the column `by`; None if the settings name none
    found: Counted | None = None  # the counted set, to name kinds by; None for a reference that was read from a file
    pictures: tuple[KeptPicture, ...] | None = None  # small pictures of its samples; None where nobody looked for them

    @classmethod
    def of(cls, sets: Sets[SetInput], settings: LeaderboardSettings, run: Run) -> BoardReference:
        """Divide a reference and models into kinds, blind to which set a sample is from."""
        embeddings = sets.at_hand
        ref = embeddings[REFERENCE]
        models = [embeddings[label] for label in sorted(embeddings.keys() - {REFERENCE})]  # in any order, one number
        kinds = KindTree.of_sets([*models, ref], settings.seed, run).pruned(MAIN_LEVEL)
        found, tree = count(ref, _near(kinds), far=True, run=run.named(COUNT_REFERENCE)), kinds.tree.with_another()
        fd, kid = DEFAULT_METRICS
        # A smaller model adds kid, and takes fd from nobody.
        full = {has_full_rank(ref, ref) and has_full_rank(model, ref) for model in models}
        suitable = tuple(name for name, needed in ((fd, True in full), (kid, False in full)) if needed)
        return cls(
            kinds=kinds,
            tally=node_tallies(tree, {REFERENCE: found.counts})[REFERENCE],
            examples=_examples(tree, found, ref),
            names={},
            info=sets[REFERENCE].info(),
            digest=ref.digest,
            space=ref.space,
            settings=settings if settings.metrics else replace(settings, metrics=suitable),
            provenance=Provenance.here(run.device),
            by=_by_values(ref, settings),
            found=found,
        )

    @property
    def tree(self) -> Tree:
        """Tree whose nodes are counted: samples far from all kinds are a leaf of it, the last one."""
        return self.kinds.tree.with_another()

    def leaves(self, tallies: Iterable[Tally]) -> NDArray[np.int64]:
        """Return kinds that do not overlap, by which numbers are computed: the far one only if it has samples."""
        last = self.kinds.tree.leaves
        return np.arange(last + any(tally.members[last] for tally in tallies))

    def with_names(self, entries: Sequence[Entry], sets: Mapping[str, Embeddings]) -> BoardReference:
        """Return the reference with names of all nodes: models that come later can name none."""
        return replace(self, names=names_of_nodes(self.tree, range(self.tree.nodes), self.counted(entries), sets))

    def with_pictures(self) -> BoardReference:
        """Return the reference with pictures of its kinds, most of the largest."""
        leaves = self.tree.leaves
        sizes = self.tally.members[:leaves] / self.tally.n
        return replace(self, pictures=pictures_to_keep(self.info, self.examples, sizes))

    def counted(self, entries: Sequence[Entry]) -> dict[str, Counted]:
        """Return the counted sets by label, of those that were not read from a file."""
        runs = {label: run.found for entry in entries for label, run in zip(entry.labels(), entry.runs, strict=True)}
        return {label: counts for label, counts in (runs | {REFERENCE: self.found}).items() if counts is not None}

    def id_of(self, node: int) -> str:
        """Return the id of a node."""
        last = self.kinds.tree.leaves
        return "far" if node == last else kind_id(node - (node > last))

    @property
    def shared(self) -> tuple[tuple[str, str], ...]:
        """Fields of a signature that say what models are measured against."""
        return (("ref", self.digest[:12]), ("kinds", self.kinds.digest[:12]))

    @property
    def signature(self) -> Signature:
        """Signature of everything that the entries of the board have in common."""
        return Signature("leaderboard", (("fx", self.space), *self.shared, *self.settings.signature()))

    def entries(
        self,
        models: Mapping[str, Sequence[OpenedSet[SetInput]]],
        ref: Embeddings,
        warnings: Sequence[str],
        run: Run,
        pairing: Pairing | None = None,
    ) -> list[Entry]:
        """Measure models, each by its training runs; of paired sets, what is unmatched is measured within blocks."""
        flat = {run_label(name, number): each for name, runs in models.items() for number, each in enumerate(runs)}
        measures = self._measures(flat, ref, run)
        found = self.found or count(ref, self.kinds, far=True, run=run.named(COUNT_REFERENCE))
        counted = self._count(flat, run)
        made: dict[str, TrainingRun] = {}
        yardsticks, seed = Yardsticks(ref, self.settings.seed, run), self.settings.seed
        first = {name: samples.at_hand for name, (samples, *_) in models.items()}
        faults, kinds = _find_faults(first, ref, seed, run)
        for label, samples in flat.items():
            tallies = node_tallies(self.tree, {label: counted[label].counts, REFERENCE: found.counts})
            tally = tallies[label]
            number = self._unmatched(label, samples.at_hand, ref, tallies, pairing, run.prefixed(label))
            made[label] = TrainingRun(
                info=samples.info(),
                members=tuple(tally.members.tolist()),
                effects=tuple(tally.effects.tolist()),
                even=tuple(tally.even.tolist()),
                within=tuple(tally.within.tolist()),
                counted=tally.n,
                examples=_examples(self.tree, counted[label], samples.at_hand),
                unmatched=Measure.of(number, False, SHARES["unmatched"], Signature("unmatched", self.shared)),
                measures=measures[label],
                by=_by_values(samples.at_hand, self.settings),
                findings=faults[label].findings if label in faults else None,
                visible=faults[label].visible if label in faults else (),
                share_floors=yardsticks.shares(tally.n) if pairing is None else {},
                own=own_shares(label, samples.at_hand, ref, seed, run.prefixed(label), pairing, kinds.get(label)),
                columns={column.name: column.digest or "" for column in registered_columns()},
                found=counted[label],
            )
        return [
            Entry(
                name=name,
                runs=tuple(made[run_label(name, number)] for number in range(len(runs))),
                warnings=tuple(warnings),
                signature=self.signature,
                provenance=Provenance.here(run.device),
            )
            for name, runs in models.items()
        ]

    def _count(self, models: Mapping[str, OpenedSet[SetInput]], run: Run) -> dict[str, Counted]:
        """Count training runs by label; no sample is far from kinds that were made of it."""
        kinds = self.kinds if self.found is None else _near(self.kinds)
        runs = run.over(COUNT_MODELS, [model.at_hand.n for model in models.values()])
        return {
            label: count(samples.at_hand, kinds, far=True, run=each)
            for (label, samples), each in zip(models.items(), runs, strict=True)
        }

    def _measures(
        self, models: Mapping[str, OpenedSet[SetInput]], ref: Embeddings, run: Run
    ) -> dict[str, dict[str, Measure]]:
        """Compute all metrics of training runs, by label and metric."""
        measures: dict[str, dict[str, Measure]] = {label: {} for label in models}
        done, total = 0, len(self.settings.metrics) * len(models)
        for metric in self.settings.metrics:
            measuring = Measuring(get_metric(metric), ref, run.prefixed(MEASURE))
            for label, samples in models.items():
                run.progress(MEASURE, done, total)
                measures[label][metric] = measuring.measure(label, samples.at_hand)
                done += 1
        run.progress(MEASURE, done, total)
        return measures

    def _unmatched(
        self,
        label: str,
        model: Embeddings,
        ref: Embeddings,
        tallies: Mapping[str, Tally],
        pairing: Pairing | None,
        run: Run,
    ) -> Estimate:
        """Estimate how different a set is from the reference."""
        if pairing is not None:
            return estimate_unmatched_within(pairing.of(label, REFERENCE), self.kinds, self.settings.seed, run)
        own, others = (each.at(self.leaves(tallies.values())).effective() for each in tallies.values())
        is_design = bool(designs({label: model, REFERENCE: ref}))
        number = estimate_unmatched(own, others, self.settings.seed, is_design=is_design)
        # Nothing of the reference is far: no leaf beyond those of its tree has any of it.
        padded = (source.padded(self.tree.leaves) if source.name == REF else source for source in number.sources)
        return replace(number, sources=tuple(padded))

    def check_counts(self, entry: Entry, where: str) -> None:
        """Raise DataError for an entry whose numbers are not those of the kinds of the board."""
        for run in entry.runs:
            try:
                self.tree.check_sums(run.tally.members, run.counted)
                shared = run.unmatched.ref_influence
                if shared is not None and len(shared) != self.tree.leaves:
                    raise DataError(f"its error has {len(shared):,} parts, and there are {self.tree.leaves:,} kinds")
            except DataError as error:
                raise DataError(f"{where}: {error}: {ADD_AGAIN}") from None

    def save(self, path: str | Path) -> None:
        """Write the reference of a board, once what it says is read back as it is."""

        def check(written: Path) -> None:
            check_readable(written, path, lambda place: BoardReference.load(place)._stated(), self._stated())

        with new_file(path, TYPE_NAME, LAYOUT, check) as file:
            self.kinds.write(file)
            file.array("members", self.tally.members)
            for name in EFFECTS:
                file.array(name, getattr(self.tally, name))
            file.header["board"] = self._stated()

    def _stated(self) -> dict[str, object]:
        """Return what a file says of the reference, besides its arrays."""
        return {
            "n": self.tally.n,
            "examples": plain(self.examples),
            "names": {str(number): plain(name) for number, name in self.names.items()},
            "info": plain(shareable(self.info)),
            "digest": self.digest,
            "space": self.space,
            "settings": plain(self.settings),
            "provenance": plain(self.provenance),
            "by": plain(self.by),
            "pictures": None if self.pictures is None else [plain(picture) for picture in self.pictures],
        }

    @classmethod
    def load(cls, path: str | Path) -> BoardReference:
        """Read the reference of a board."""
        with existing_file(path, TYPE_NAME, LAYOUT, "take it from a backup, or make the board again") as file:
            kinds, header = KindTree.read(file), file.header["board"]
            nodes = kinds.tree.with_another().nodes
            members = file.array("members", nodes, dtype="<i8")
            effects, even, within = (file.array(name, nodes, dtype="<f8") for name in EFFECTS)
            kinds.tree.with_another().check_sums(members, header["n"])
            examples = tuple(structure(Examples, part, str(path)) for part in header["examples"])
            if len(examples) != nodes or not {*map(int, header["names"])} <= {*range(nodes)}:
                raise ValueError("its examples or names are not of its kinds")
            return cls(
                kinds=kinds,
                tally=Tally(int(header["n"]), members, effects, even, within),
                examples=examples,
                names={int(number): structure(Name, name, str(path)) for number, name in header["names"].items()},
                info=structure(SetInfo, header["info"], str(path)),
                digest=str(header["digest"]),
                space=str(header["space"]),
                settings=structure(LeaderboardSettings, header["settings"], str(path)),
                provenance=structure(Provenance, header["provenance"], str(path)),
                by=structure(ValueCounts, found, str(path)) if (found := header.get("by")) else None,
                pictures=None
                if (kept := header.get("pictures")) is None
                else tuple(structure(KeptPicture, picture, str(path)) for picture in kept),
            )


def _find_faults(
    models: Mapping[str, Embeddings], ref: Embeddings, seed: int, run: Run
) -> tuple[dict[str, Differences], dict[str, KindTree]]:
    """Return in what models, each by one training run, differ from the reference, whose pictures are measured once.

    Also return the kinds of each model's samples and the reference.
    """
    silently = replace(run, progress=silent)
    pictures = measure_pictures(ref, silently)
    found, kinds = {}, {}
    for number, (name, samples) in enumerate(models.items()):
        run.progress(FIND_FAULTS, number, len(models))
        kinds[name] = KindTree.of_sets([samples, ref], seed, silently)
        found[name] = differences_between(samples, ref, pictures, seed, silently, kinds[name])
    run.progress(FIND_FAULTS, len(models), len(models))
    return found, kinds


def _by_values(samples: Embeddings, settings: LeaderboardSettings) -> ValueCounts | None:
    return None if settings.by is None else ValueCounts.of(samples, settings.by)


def _near(kinds: KindTree) -> KindTree:
    """Return the kinds with no sample far from them: those that they were made of are not."""
    return replace(kinds, radius=inf)


def _examples(tree: Tree, counted: Counted, embeddings: Embeddings) -> tuple[Examples, ...]:
    return tuple(counted.examples(embeddings, *tree.leaves_of(node)) for node in range(tree.nodes))
