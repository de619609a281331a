"""A number by a protocol: exactly what its card says is computed, or the field that does not hold is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from finc_eval.core.digest import sha256_of_file
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.kept.entries import add_entry, entries_of, place_of
from finc_eval.core.words import join_words
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.needs import Known, ListedSamples
from finc_eval.embeddings.opening import form_of, open_embedded
from finc_eval.embeddings.recipe import ARRAY_SPACE, changes, extractor_of, recipe_of, space_of
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.settings import Extraction
from finc_eval.measures.gaussians.reference_statistics import beside_samples, read_statistics, stated_text
from finc_eval.measures.protocols.card import LoadedProtocol, load_protocol
from finc_eval.measures.registry import get_metric, with_parameters
from finc_eval.measures.score import Score, Scores
from finc_eval.samples.opening import open_source
from finc_eval.samples.reading import STORED

REFERENCES = "references.json"  # record of the digest that the reference of each protocol had on its first use


def by_protocol(
    name: str | Path,
    sources: Mapping[str, object],
    others: Mapping[str, object],
    how: Extraction,
    compute: Callable[..., Scores],
) -> Scores:
    """Compute the number of a protocol.

    Args:
        name: name of the protocol, or the path of its card.
        sources: the generated set and the reference, by "gen" and "ref".
        others: options that do not go with a protocol, None if they are not given.
        how: how samples are embedded; the protocol chooses the extractor.
        compute: function that computes metrics of sources, with checks of the opened sets.

    Raises:
        UsageError: the protocol is unknown, or another option does not go with it.
        IncompatibleError: a field of the protocol does not hold; the message names it.
    """
    if given := [option for option, value in others.items() if value is not None]:
        raise UsageError(f"a protocol says what is computed, so {join_words(given)} does not go with it: leave it out")
    protocol = load_protocol(name)
    conformity = Conformity(protocol)
    conformity.check_extraction(how)
    conformity.check_given(sources, how)
    metric = with_parameters(get_metric(protocol.card.metric), protocol.card.parameters)
    scores = compute(
        [replace(metric, extractor=protocol.extractor.name)],
        sources,
        replace(how, extractor=protocol.given),
        checks=[conformity.check_sets],
        about=conformity.about,
    )
    return replace(scores, scores=tuple(conformity.signed(score) for score in scores))


class Conformity:
    """Check that two sets, and how they are embedded, are as a protocol says.

    Attributes:
        about: texts for a file of statistics of the reference; its digest joins them once it is known.
    """

    def __init__(self, protocol: LoadedProtocol) -> None:
        self._card, self._protocol = protocol.card, protocol
        self.about = {"protocol": protocol.card.name, "license": protocol.card.reference.license}
        self._is_file = False  # whether the reference is statistics in a file, perhaps beside some of its samples

    def check_extraction(self, how: Extraction) -> None:
        """Refuse choices of the embedding that change its numbers."""
        if how.extractor is not None and (other := load_card(how.extractor).name) != self._protocol.extractor.name:
            raise self._unlike("extractor", self._protocol.extractor.name, f"extractor is {other}")
        for field, own in (("precision", "float32"), ("color", STORED), ("fps", None)):
            if (value := getattr(how, field)) != own:
                raise self._unlike(field, own or "that of the extractor", f"{field} is {value}")

    def check_given(self, sources: Mapping[str, object], how: Extraction) -> None:
        """Refuse sets in a form without samples, of another extractor or of another size, before weights are needed."""
        if (form := form_of(sources["gen"])) not in ("samples", "embeddings"):
            raise self._unlike("samples", f"{self._card.samples:,}", f"gen is a {form}, which has none")
        self._look_at_file(sources["ref"])
        for label, given in sources.items():
            form = form_of(given)
            if form == "embeddings":
                self._check_space(label, open_embedded(given, label).held)
            elif form == "samples" and isinstance(given, str | Path):
                source = open_source(given, n=how.n, seed=how.seed, **how.reading.choices)
                self.check_sets({label: ListedSamples(label, "", source.ids, {}, source=source)})

    def check_sets(self, sets: Mapping[str, Known]) -> None:
        """Refuse sets that are not as the protocol says, before they are embedded and after that."""
        counts = {"gen": ("samples", self._card.samples), "ref": ("reference.n", self._card.reference.n)}
        for label, known in sets.items():
            field, count = counts[label]
            if count is not None and known.n != count and not (label == "ref" and self._is_file):
                raise self._unlike(field, f"{count:,}", f"{label} has {known.n:,}")
            self._check_size(label, known)
        if not self._is_file and isinstance(ref := sets.get("ref"), CachedEmbeddings):
            self._check_reference(ref.cache.manifest_digest)

    def signed(self, score: Score) -> Score:
        """Return a score whose signature has the protocol and the reference; pin the reference on its first use."""
        digest, name, first = self.about["reference"], self._card.name, list[str]()
        unverified = [f"not verified of {name}: {text}" for text in self._card.source.unverified]
        if self._card.reference.digest is None:
            add_entry(REFERENCES, self._protocol.place, digest)
            first = [f"{name} states no digest of its reference; this one has {digest}"]
            name = f"{name} (reference not verified)"
        signature = score.signature.adding(("protocol", name), ("ref", digest[:12]))
        return replace(score, signature=signature, notes=(*first, *score.notes, *unverified))

    def _look_at_file(self, ref: object) -> None:
        """Check a reference that is a file of statistics, or has them beside its samples."""
        form = form_of(ref)
        if form == "sketch" or (form == "statistics" and not isinstance(ref, str | Path)):
            raise self._unlike("reference", self._card.reference.description, f"ref is a {form} without a file")
        if form != "statistics" and beside_samples(ref) is None:
            return
        path, count, self._is_file = on_disk(str(ref)), self._card.reference.n, True
        stated = read_statistics(path)
        if None not in (count, stated.n) and stated.n != count:
            raise self._unlike("reference.n", f"{count:,}", f"ref has {stated.n:,}")
        # The space of our own files has the digest of all that decides the numbers.
        if not stated.space.startswith(ARRAY_SPACE) and stated.space != (own := space_of(self._protocol.extractor)):
            raise self._unlike("extractor", own, f"ref is of {stated.space}")
        self._check_reference(sha256_of_file(path), stated_text(path, "reference"))

    def _check_space(self, label: str, embeddings: Embeddings) -> None:
        own, other = self._protocol.extractor, extractor_of(embeddings.space)
        if not isinstance(embeddings, CachedEmbeddings):
            raise self._unlike("extractor", own.name, f"{label} is an array, which does not say what made it")
        if other != own.name:
            raise self._unlike("extractor", own.name, f"{label} is embedded by {other}")
        # All that decides the numbers: preprocessing, layer, weights, precision.
        for change in changes(recipe_of(own, "float32"), embeddings.cache.recipe):
            field, _, values = change.partition(": ")
            before, _, now = values.partition(", now ")
            raise self._unlike(field, before, f"{label} has {now}")

    def _check_size(self, label: str, known: Known) -> None:
        if self._card.size is None:
            return
        height, width = self._card.size
        for other in sorted(_sizes(known) - {f"{width}x{height}"}):
            raise self._unlike("size", f"{width}x{height}", f"{label} has samples of {other}")

    def _check_reference(self, digest: str, made_of: str = "") -> None:
        """Refuse another reference than the card states, or than on its first use.

        `made_of` is the digest of the samples that a file of statistics says it was made of: it will do for what the
        first use pinned, and not for what a card states.
        """
        stated, pins, record = self._card.reference.digest, entries_of(REFERENCES), place_of(REFERENCES)
        if stated is None and pins is None:
            raise DataError(f"{record} is damaged: remove it, and each reference is trusted again on its first use")
        known = stated or (pins or {}).get(self._protocol.place)
        if known not in (None, digest) and (stated or known != made_of):
            hint = "" if stated else f" as on its first use (if that was a mistake, remove its line in {record})"
            raise self._unlike("reference.digest", f"{known}{hint}", f"ref has {digest}")
        self.about["reference"] = str(known or made_of or digest)

    def _unlike(self, field: str, own: Any, other: str) -> IncompatibleError:
        return IncompatibleError(
            f"the protocol {self._card.name} does not hold: {field} must be {own}, and {other}: correct that, or leave "
            "the protocol out"
        )


def _sizes(known: Known) -> set[str]:
    """Return the sizes of samples as far as they are known: all once embedded, before that the size of the first."""
    if isinstance(known, CachedEmbeddings):
        profile = known.cache.profile
        return {*profile.sizes, *(["other sizes"] if profile.other_sizes else [])}
    source = known.source if isinstance(known, ListedSamples) else None
    if source is None or source.once:
        return set()
    shapes = [sample.pixels.shape for sample in source.take([0]) if sample.pixels is not None]
    return {f"{shape[-2]}x{shape[-3]}" for shape in shapes}
