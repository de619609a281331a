"""The sets to divide into kinds: whatever the caller has of each, opened and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import as_embeddings, open_sets
from finc_eval.embeddings.repeats import few_groups, mean_group_size
from finc_eval.embeddings.set_info import SetInfo, notes_on, set_info
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.sketches.opening import as_sketch, group_sets
from finc_eval.sketches.sketch import Sketch

MIN_SAMPLES = 20
"""Samples that each set needs. With 20 in each, a kind of one set alone is found from a share of .42 on; with 8,
from .70."""


@dataclass(frozen=True)
class OpenedSet:
    """A set to count."""

    label: str
    embeddings: Embeddings  # its embeddings; of a sketch, the sample that it holds
    sketch: Sketch | None

    @property
    def space(self) -> str:
        """Extractor, as name@digest."""
        return self.embeddings.space

    def info(self) -> SetInfo:
        """Describe the set for a report."""
        if self.sketch is None:
            return set_info(self.label, self.embeddings, self.embeddings.n, self.embeddings.digest)
        return set_info(self.sketch.name or self.label, None, self.sketch.n, "+".join(self.sketch.sources))

    def warnings(self) -> list[str]:
        """Warn of a sketch that holds only some of its samples, and of samples in few groups."""
        warnings = notes_on(self.label, self.embeddings)
        if self.sketch is not None and self.embeddings.n != self.sketch.n:
            held = f"{self.embeddings.n:,} embeddings that it holds are counted, of {self.sketch.n:,} samples"
            warnings.append(f"{self.label} is a sketch: the {held}, so smaller differences are missed")
        n, name = self.embeddings.n, self.embeddings.grouping
        return warnings + few_groups(self.label, n, mean_group_size(self.embeddings), name)


def countable_sets(
    sources: Mapping[str, object],
    groups: str | None,
    run: Run,
    extractor: AnyExtractor = None,
    preferred: str | None = None,
    spaces: Iterable[str] = (),
) -> tuple[dict[str, OpenedSet], tuple[str, ...]]:
    """Open sets whose samples are counted, with groups of what is not independent, and return sentences on them.

    `preferred` is the extractor where none is named, and all sets are samples; `spaces` as in `open_sets`.
    """
    if len(sources) < 2:
        raise UsageError(f"at least two sets are needed to compare, got {len(sources)}")
    opened = open_sets(
        sources, lambda source, label: countable_set(source, label, groups), extractor, run, spaces, preferred=preferred
    )
    grouped, sentences = group_sets({label: one.embeddings for label, one in opened.items()}, groups, run)
    found = {label: replace(one, embeddings=grouped[label]) for label, one in opened.items()}
    return found, (*(warning for one in found.values() for warning in one.warnings()), *sentences)


def countable_set(source: object, label: str, groups: str | None = None) -> OpenedSet:
    """Open a set that is embedded."""
    sketch = as_sketch(source)
    if sketch is not None:
        if groups is not None:
            raise UsageError(
                f"{label} is a sketch, which does not keep the column {groups!r} that groups asks for: pass its "
                "embeddings, or leave groups out"
            )
        held = sketch.held(label)
        if held is None:
            raise DataError(
                f"{label} is a sketch that keeps no samples, or not which groups they are of: pass its embeddings"
            )
        embeddings: Embeddings = held
    else:
        embeddings = as_embeddings(source, label)
    if embeddings.n < MIN_SAMPLES:
        raise DataError(f"{label} has {plural(embeddings.n, 'sample')}: at least {MIN_SAMPLES} of each set are needed")
    return OpenedSet(label, embeddings, sketch)
