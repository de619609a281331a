"""The sets that a verb is given: folders and archives are embedded, files of embeddings and sketches stay paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import finc_eval as fe
from finc_eval.core.errors import UsageError
from finc_eval.core.files.front import is_stored
from finc_eval.core.files.reading import header_of
from finc_eval.core.run import Run
from finc_eval.embeddings.cache import EmbeddingCache, cache_title
from finc_eval.extractors.catalog import DEFAULT_EXTRACTOR, available_cards, load_card
from finc_eval.samples.opening import existing_path


def named_sets(arguments: Iterable[str]) -> dict[str, str]:
    """Return the paths of sets by name, from arguments of the form NAME=PATH."""
    sets: dict[str, str] = {}
    for argument in arguments:
        name, _, path = argument.partition("=")
        if not name or not path:
            raise UsageError(f"{argument!r} is not of the form NAME=PATH: write for example mine=samples/")
        if name in sets:
            raise UsageError(f"two models are called {name!r}: give each its own name")
        sets[name] = path
    return sets


def check_given(sources: Iterable[str | Path | None], extractor: str | None = None) -> None:
    """Refuse paths that do not exist and extractors that nobody knows; call it first, as the work loads torch."""
    for source in sources:
        if source is not None:
            existing_path(source)
    if extractor is not None and not extractor.startswith("timm:"):
        load_card(extractor)


def titled(source: str, label: str) -> str:
    """Return the title of a set, as results have it, from its path."""
    path = existing_path(source)
    if path is None:
        return Path(source).name
    header = header_of(path) or {}
    if header.get("type") == "embeddings":
        with EmbeddingCache(path) as cache:
            return cache_title(cache) or label
    if header.get("type") == "sketch" and header.get("name"):
        return str(header["name"])
    return path.stem if is_embedded(source) else path.resolve().name


def embed_all(
    sources: Mapping[str, str], extractor: str | None, strict: bool, run: Run, *, released: Path | None = None
) -> dict[str, fe.EmbeddingCache | str]:
    """Embed the sets that are not embedded yet, with one extractor: by default, the one behind the other sets."""
    from finc_eval.loading import extractor_of  # loads torch, which wrong options need not wait for

    files: list[str | Path] = [*([released] if released else []), *sources.values()]
    made_by = next(filter(None, map(extractor_of, files)), None)
    chosen = extractor or made_by or DEFAULT_EXTRACTOR
    if made_by and not extractor and not all(map(is_embedded, sources.values())):
        chosen = card_again(made_by)
    return {label: embed(label, source, chosen, strict, run) for label, source in sources.items()}


def embed(label: str, source: str, extractor: str, strict: bool, run: Run) -> fe.EmbeddingCache | str:
    """Embed a set; the path of embeddings or of a sketch is returned as it is."""
    if is_embedded(source):
        return source
    return fe.extract(source, extractor, strict=strict, run=run.prefixed(label))


def card_again(made_by: str) -> str:
    """Return the name of the extractor behind embeddings, if it can be loaded by its name."""
    if made_by.startswith("timm:") or made_by in available_cards():
        return made_by
    raise UsageError(f"the embeddings were made with a card of your own, {made_by}: pass its path as --extractor")


def is_embedded(source: str) -> bool:
    """Return True for files of embeddings and sketches, even damaged ones: the message should be about the damage."""
    from finc_eval.embeddings.array_files import is_array_file  # loads torch

    return Path(source).is_file() and (is_stored(source) or is_array_file(source))
