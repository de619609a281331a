"""`form_of` says what a set is; `open_sets` opens each set once by its form, and embeds samples first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from finc_eval.core.doors import with_home, without_links
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.on_disk import file_of, on_disk
from finc_eval.core.files.stored import check_type, file_type, is_stored
from finc_eval.core.run import Run
from finc_eval.core.words import join_words
from finc_eval.embeddings.array_files import HDF5_SUFFIXES, StoredArrays, holds_statistics, is_array_file
from finc_eval.embeddings.base import ArrayEmbeddings, CachedEmbeddings, Embeddings
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.needs import Check, Known, check_all, needs_columns
from finc_eval.embeddings.opened import Form, Held, OpenedSet, Sets
from finc_eval.embeddings.recipe import ARRAY_SPACE, check_alike, extractor_of
from finc_eval.extractors.catalog import card_again, load_card
from finc_eval.extractors.settings import AnyExtractor, extraction_of
from finc_eval.samples.images import IMAGE_SUFFIXES
from finc_eval.samples.in_memory import gives_images, holds_images, is_batch
from finc_eval.samples.reading import BRACES
from finc_eval.samples.shards import Shard
from finc_eval.samples.source import Source, is_dataset

if TYPE_CHECKING:
    from finc_eval.embeddings.extract import SetExtraction

Opener = Callable[[object, str], OpenedSet[Held]]
"""Function that opens a set of its form, from what somebody gave and the label."""


def form_of(source: object) -> Form:
    """Return what a set is, an object or a path; what is damaged or no set at all is opened as what its name says."""
    if not isinstance(source, str | Path):
        made = getattr(type(source), "type_name", None)  # of a sketch, and of statistics
        if made in ("sketch", "statistics"):
            return made  # type: ignore[no-any-return]  # it is one of these
        return "samples" if isinstance(source, Source) or is_dataset(source) or _gives_images(source) else "embeddings"
    if Path(source).suffix.lower() in HDF5_SUFFIXES:
        return "samples" if Path(source).is_dir() else _form_of_file(source)
    path = None if BRACES.search(str(source)) else file_of(source)
    if path is None:
        return "samples"
    if is_stored(path):
        return _form_of_file(path)
    if is_array_file(path):
        return "embeddings"
    # Of pickles, statistics alone are known: whoever takes these says how to convert one.
    return "statistics" if holds_statistics(path) or path.suffix.lower() == ".pkl" else "samples"


def _form_of_file(path: str | Path) -> Form:
    return "sketch" if file_type(path) == "sketch" else "embeddings"


def as_embeddings(source: object, name: str = "embeddings", *, or_shard: bool = False) -> Embeddings:
    """Open the embeddings in an array, a tensor, an `EmbeddingSet`, a cache, or a file.

    A file is a cache, or an .npy, .npz, .pt, .safetensors, .parquet or HDF5 file of embeddings. A shard is refused
    unless `or_shard`.
    """
    if isinstance(source, str | Path) and form_of(path := on_disk(source)) == "statistics":
        raise statistics_error(path)
    return _open_embeddings(source, name, or_shard=or_shard)


def _open_embeddings(source: object, name: str, *, or_shard: bool = False) -> Embeddings:
    """Open embeddings that are known to be no statistics; see `as_embeddings`."""
    if isinstance(source, Embeddings):
        embeddings = source
    elif isinstance(source, str | Path):
        path = on_disk(source)
        embeddings = StoredArrays(path) if is_array_file(path) else CachedEmbeddings(EmbeddingCache(path))
    elif isinstance(source, EmbeddingCache):
        embeddings = CachedEmbeddings(source)
    else:
        check_type(source, name, "embeddings")
        _refuse_other_forms(source, name)
        embeddings = ArrayEmbeddings(source, name)  # type: ignore[arg-type]  # anything else must be an array
    if embeddings.shard is not None and not or_shard:
        raise unmerged_error(embeddings.name, embeddings.shard)
    return embeddings


def open_pair(
    first: object, second: object, *, names: tuple[str, str] = ("the generated set", "the reference"), least: int = 0
) -> tuple[Embeddings, Embeddings]:
    """Open two sets of embeddings of one space, each of at least `least` samples; `names` are those in messages."""
    x, y = as_embeddings(first, names[0]), as_embeddings(second, names[1])
    check_alike(x.name, x, y.name, y)
    for embeddings in (x, y):
        if embeddings.n < least:
            raise DataError(
                f"this metric needs at least {least} samples in each set, {embeddings.name} has {embeddings.n}"
            )
    return x, y


def _refuse_other_forms(source: object, name: str) -> None:
    """Raise UsageError for images and labels apart, for a table of texts, and for nothing, with the form to pass."""
    if isinstance(source, Mapping) or (isinstance(source, list | tuple) and source and is_batch(source[0])):
        raise UsageError(
            f"{name} is a {type(source).__name__} of several things: pass one array of embeddings; or images, with "
            "their labels as list(zip(images, labels))"
        )
    if isinstance(source, list | tuple) and not source:
        raise UsageError(f"{name} is an empty {type(source).__name__}: pass the samples or their embeddings")
    types = getattr(source, "dtypes", None)  # of a data frame of pandas
    columns = types.items() if types is not None and hasattr(types, "items") else ()
    if texts := [str(column) for column, dtype in columns if getattr(dtype, "kind", "f") not in "biuf"]:
        raise UsageError(
            f"{name} is a table, and its column {texts[0]} is not one of numbers: pass paths of images as "
            "list(x['path']), a column of lists as numpy.stack(x['embedding']), or embeddings and other columns as "
            "fe.EmbeddingSet(numbers, metadata=others)"
        )


def statistics_error(path: Path) -> DataError:
    """Return the error for statistics where embeddings are needed."""
    if path.suffix.lower() == ".pkl":
        return DataError(
            f"{path} is a pickle, which runs its author's code when it is read: if you trust it, convert it once with "
            "numpy.save(path, embeddings) and pass that file"
        )
    return DataError(
        f"{path} holds the mean and covariance of a set, which only Fréchet distances take (finc-eval metrics "
        "--metrics fd): give the samples, their embeddings, or a sketch of them"
    )


def unmerged_error(name: str, shard: Shard) -> DataError:
    """Return the error for a shard where a whole set is needed."""
    return DataError(f"{name} is shard {shard.name} of a set: join all its shards first, by finc-eval extract merge")


def label_sets(sets: Mapping[str, object] | Sequence[object], what: str, taken: str | None = None) -> dict[str, object]:
    """Return sets by label; the sets of a list get the names of their files and folders, or else numbers.

    None of a list can have the label `taken`.
    """
    if isinstance(sets, Mapping):
        if not all(str(label).strip() for label in sets):
            raise UsageError(f"a {what} has an empty name: give each a name of letters or numbers")
        return {str(label): given_set for label, given_set in sets.items()}
    if not isinstance(sets, list | tuple):
        raise UsageError(
            f'{what}s must be sets by label, {{"a": x, "b": y}}, or a list of sets, got {type(sets).__name__}'
        )
    names = [name_of(given_set) for given_set in sets if isinstance(given_set, str | Path)]
    if len(set(names)) < len(sets) or taken in names:
        names = [f"{what} {number}" for number in range(1, len(sets) + 1)]
    return dict(zip(names, sets, strict=True))


def name_of(path: str | Path) -> str:
    """Return the name of a set from its path: the name of a folder, or of a file without its suffix."""
    whole = without_links(with_home(path))
    return whole.name if whole.is_dir() else whole.name.split(".")[0]


def training_runs(given: object) -> list[object]:
    """Return the sets of a model, which a list has for several training runs."""
    return [given] if is_one_set(given) else list(given)  # type: ignore[call-overload]  # else it is a list


def is_one_set(given: object) -> bool:
    """Return whether this is one set, such as a list of rows, of images, or of images with labels; not several sets."""
    if not isinstance(given, list | tuple):
        return True
    first = given[0] if given else None
    if isinstance(first, str | PathLike):
        return Path(first).suffix.lower() in IMAGE_SUFFIXES  # an image alone is not a set
    if holds_images(given):
        shape = getattr(first, "shape", (3,))
        return 3 in (shape[0], shape[-1]) or 1 in (shape[0], shape[-1]) or len(shape) == 2
    is_row = isinstance(first, int | float) or getattr(first, "ndim", 0) == 1
    return is_row or (isinstance(first, list | tuple) and not holds_images(first))


def open_embedded(source: object, label: str, *, or_shard: bool = False) -> OpenedSet[Embeddings]:
    """Open a set of embeddings, also that of samples that are embedded."""
    return OpenedSet(label, _open_embeddings(source, label, or_shard=or_shard))


def _refuse_summary(source: object, label: str) -> OpenedSet[Embeddings]:
    return OpenedSet(label, as_embeddings(source, label))  # it says what a sketch or statistics lack


OF_EMBEDDINGS: Mapping[Form, Opener[Embeddings]] = {
    "embeddings": open_embedded,
    "sketch": _refuse_summary,
    "statistics": _refuse_summary,
}
"""Functions that open sets where embeddings alone will do, by the form of the set."""


def open_sets(
    sources: Mapping[str, object],
    openers: Mapping[Form, Opener[Held]],
    extractor: AnyExtractor,
    run: Run,
    spaces: Iterable[str] = (),
    *,
    preferred: str | Callable[[], str | None] | None = None,
    checks: Sequence[Check] = (),
) -> Sets[Held]:
    """Open sets by label, each by its form, and embed those that are samples, all with one extractor.

    `openers` has an entry for each form but samples, which are opened as embeddings once they are embedded. An
    extractor without a name is the one behind the other sets, or else `preferred`, or the default; `spaces` are those
    of further sets to compare with. `checks` are of all sets together, and are made before the work.
    """
    ready, waiting = _divide_sources(sources, openers, extractor, run, spaces, preferred)

    def check(listed: Mapping[str, Known]) -> None:
        known = Sets(ready).known | dict(listed)
        check_all(checks, {label: known[label] for label in sources if label in known})

    if not waiting:
        check({})
        return Sets(ready)
    from finc_eval.embeddings.extract import extract_all  # the readers of samples, which arrays do not need

    how = extraction_of(extractor)
    caches = extract_all(waiting, run, shard=how.shard, alone=not ready, check=check)
    made = {
        label: replace(openers["embeddings"](cache, label), given=sources[label], form="samples")
        for label, cache in caches.items()
    }
    opened = Sets({label: (ready | made)[label] for label in sources})
    check_all(checks, opened.known)  # some samples may be unreadable, and some are known only now
    return opened


def open_embeddings(
    sources: Mapping[str, object],
    extractor: AnyExtractor,
    run: Run,
    spaces: Iterable[str] = (),
    *,
    or_shard: bool = False,
    checks: Sequence[Check] = (),
) -> dict[str, Embeddings]:
    """Open sets by label as embeddings, and refuse sketches and statistics; see `open_sets`.

    Shards are refused unless `or_shard`.
    """
    openers: dict[Form, Opener[Embeddings]] = {**OF_EMBEDDINGS, "embeddings": partial(open_embedded, or_shard=or_shard)}
    return open_sets(sources, openers, extractor, run, spaces, checks=checks).held


def open_grouped(source: object, label: str, groups: str | None, extractor: AnyExtractor, run: Run) -> Embeddings:
    """Open a set that has the column of groups, and embed it first if it is samples."""
    return open_embeddings({label: source}, extractor, run, checks=[needs_columns(groups)])[label]


def digests_of(sources: Mapping[str, object], extractor: AnyExtractor, spaces: Iterable[str] = ()) -> dict[str, str]:
    """Return the digest of each set by label, as `SetInfo` has it; samples are read and not embedded."""
    run = Run()
    ready, waiting = _divide_sources(sources, OF_EMBEDDINGS, extractor, run, spaces)
    return {
        label: ready[label].held.digest if label in ready else waiting[label].job(None, None).key(run.progress)
        for label in sources
    }


def _check_paths(sources: Mapping[str, object]) -> None:
    """Raise UsageError for a path without a letter, such as a variable that is not set: it is the current folder."""
    for label, source in sources.items():
        if isinstance(source, str) and not source.strip():
            raise UsageError(f"{label} is an empty path: pass a folder or a file ('.' is the current folder)")


def _divide_sources(
    sources: Mapping[str, object],
    openers: Mapping[Form, Opener[Held]],
    extractor: AnyExtractor,
    run: Run,
    spaces: Iterable[str] = (),
    preferred: str | Callable[[], str | None] | None = None,
) -> tuple[dict[str, OpenedSet[Held]], dict[str, SetExtraction]]:
    """Open the sets that are embedded, and list the samples of the others, by label; see `open_sets`."""
    _check_paths(sources)
    how, forms = extraction_of(extractor), {label: form_of(source) for label, source in sources.items()}
    ready = {
        label: replace(openers[forms[label]](source, label), given=source, form=forms[label])
        for label, source in sources.items()
        if forms[label] != "samples"
    }
    if how.n is not None and ready:
        raise UsageError(
            f"n takes samples before they are embedded, and {next(iter(ready))} is embedded already: leave n out, or "
            "embed fewer samples (finc-eval extract --n)"
        )
    if how.prompts is not None and ready:
        raise UsageError(
            f"prompts are read with samples, and {next(iter(ready))} is embedded already: leave prompts out, or pass "
            "the samples"
        )
    if how.extractor is not None and ready:
        _check_made_by(how.extractor, ready, needed=len(ready) < len(sources))
    if how.extractor is not None and len(ready) < len(sources):
        _check_compared(how.extractor, spaces := tuple(spaces))
    if len(ready) == len(sources):  # and no extractor is needed, which may be a card of the user's own
        return ready, {}
    from finc_eval.embeddings.extract import SetExtraction

    every = (*spaces, *(embeddings.space for embeddings in ready.values()))
    behind = next((extractor_of(space) for space in every if not space.startswith(ARRAY_SPACE)), None)
    wanted = preferred() if callable(preferred) else preferred
    chosen = how.extractor or wanted or (behind and card_again(behind))
    return ready, {
        label: SetExtraction(source, replace(how, extractor=chosen), run=run)  # type: ignore[arg-type]
        for label, source in sources.items()
        if label not in ready
    }


def _check_made_by(extractor: str, ready: Mapping[str, OpenedSet[Held]], *, needed: bool) -> None:
    """Raise UsageError if an extractor is asked for that did not make the embeddings that are there.

    `needed` says whether other sets will be embedded by it.
    """
    name = load_card(extractor).name
    known = {
        label: extractor_of(embeddings.space)
        for label, embeddings in ready.items()
        if not embeddings.space.startswith(ARRAY_SPACE)
    }
    for label, other in known.items():
        if other != name:
            raise UsageError(
                f"extractor is {name}, but {label} is embedded already, by {other}: leave extractor out, or pass the "
                "samples"
            )
    if not (known or needed):
        raise UsageError(
            f"extractor is {name}, but {next(iter(ready))} is an array of embeddings, which has no extractor: leave "
            "extractor out, or pass the samples"
        )


def _check_compared(extractor: str, spaces: Iterable[str]) -> None:
    """Raise UsageError if sets would be embedded by another extractor than what they are compared with."""
    name = load_card(extractor).name
    others = {extractor_of(space) for space in spaces if not space.startswith(ARRAY_SPACE)} - {name}
    if others:
        raise UsageError(
            f"extractor is {name}, but the samples are compared with embeddings by {join_words(sorted(others))}: leave "
            "extractor out"
        )


def embed_sources(
    sources: Mapping[str, object],
    extractor: AnyExtractor,
    run: Run,
    spaces: Iterable[str] = (),
    checks: Sequence[Check] = (),
) -> dict[str, object]:
    """Return sets by label, those that are samples as their caches; see `open_sets`. Arrays are not looked at."""
    held = {
        label: source
        for label, source in sources.items()
        if isinstance(source, str | Path | EmbeddingCache) or form_of(source) == "samples"
    }
    opened = open_embeddings(held, extractor, run, spaces, checks=checks)
    return {
        label: embeddings.cache if isinstance(embeddings := opened.get(label), CachedEmbeddings) else source
        for label, source in sources.items()
    }


def _gives_images(source: object) -> bool:
    """Return whether an object gives images: a list, an array, an iterator or a dataset of them."""
    if isinstance(source, list | tuple):
        return holds_images(source)
    if isinstance(source, Iterator):
        return True
    if is_batch(source):  # features of shape (n, d, 1, 1) have four dimensions too
        shape: tuple[int, ...] = source.shape  # type: ignore[attr-defined]  # it has four dimensions
        return sorted(shape[1:])[1] > 1
    if getattr(source, "ndim", None) == 3:
        return str(getattr(source, "dtype", "")).endswith("uint8")
    return any(base.__module__.startswith("torch.utils.data.") for base in type(source).__mro__) or gives_images(source)
