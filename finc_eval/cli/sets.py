"""The sets that a verb is given: checked, named and titled before any work."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from finc_eval.comparison.settings import REFERENCE
from finc_eval.core.errors import UsageError
from finc_eval.core.files.reading import header_of
from finc_eval.core.remote.urls import is_url, place_of
from finc_eval.embeddings.cache import EmbeddingCache, cache_title
from finc_eval.extractors.catalog import load_card
from finc_eval.samples.opening import existing_path


def name_sets(gens: Iterable[str], ref: str | None = None) -> dict[str, str]:
    """Return the paths of sets by name, from arguments NAME=PATH, or PATH, which is named by its title."""
    sets: dict[str, str] = {}
    for argument in gens:
        name, path, _ = _name(argument)
        if name in sets:
            raise UsageError(f"two models are called {name!r}: give each its own name, NAME=PATH")
        sets[name] = path
    return sets if ref is None else sets | {REFERENCE: ref}


def runs_of_models(gens: Iterable[str]) -> dict[str, list[str]]:
    """Return the paths of the training runs of models by name: a NAME=PATH given several times is one model."""
    models: dict[str, list[str]] = {}
    for argument in gens:
        name, path, by_hand = _name(argument)
        if name in models and not by_hand:
            raise UsageError(f"two models are called {name!r}: give each its own name, NAME=PATH")
        models.setdefault(name, []).append(path)
    return models


def _name(argument: str) -> tuple[str, str, bool]:
    """Return the name and the path of a set, and whether the name was given."""
    name, equals, path = argument.partition("=")
    by_hand = bool(equals) and not is_url(argument) and not Path(argument).exists()
    if not by_hand:
        name, path = title_of(argument, argument), argument
    elif not name or not path:
        raise UsageError(f"{argument!r} is not of the form NAME=PATH: write for example mine=samples/")
    if name == REFERENCE:
        raise UsageError(
            f'a model cannot be called "{REFERENCE}": pass the reference as --ref, or name the model, NAME=PATH'
        )
    return name, path, by_hand


def paths_by_name(arguments: Iterable[str], option: str, example: str) -> dict[str, str]:
    """Return the paths of an option that is given as NAME=PATH, once for each name."""
    found: dict[str, str] = {}
    for argument in arguments:
        name, _, path = argument.partition("=")
        if not name or not path:
            raise UsageError(f"{option} is NAME=PATH, got {argument}: write for example {example}")
        if name in found:
            raise UsageError(f"{option} has {name} twice: give each name once")
        found[name] = path
    return found


def check_given(sources: Iterable[str | Path | None], extractor: str | None = None) -> None:
    """Refuse paths that do not exist and extractors that nobody knows; call it first, as the work loads torch."""
    for source in sources:
        if source is not None:
            existing_path(source)
    if extractor is not None and not extractor.startswith("timm:"):
        load_card(extractor)


def title_of(source: str, label: str) -> str:
    """Return the title of a set, as results have it, from its path."""
    path = existing_path(source)
    if path is None:
        return Path(place_of(source)).name
    header = header_of(path) or {}
    if header.get("type") == "embeddings":
        with EmbeddingCache(path) as cache:
            return cache_title(cache) or label
    if header.get("type") == "sketch" and header.get("name"):
        return str(header["name"])
    return path.resolve().name if path.is_dir() else path.stem
