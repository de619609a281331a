"""Cells: the early maps of the default extractor on 7 × 7 windows, in files and in parts of sets."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from _extraction import extract, message
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.core.files.copies import copy_content
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import new_file
from finc_eval.core.run import Run
from finc_eval.embeddings import cells as module
from finc_eval.embeddings.base import ArrayEmbeddings, CachedEmbeddings
from finc_eval.embeddings.cache import WHOLE, EmbeddingCache
from finc_eval.embeddings.cells import Cells, rows_with_cells
from finc_eval.embeddings.extract import SetExtraction
from finc_eval.embeddings.keys import string_hashes
from finc_eval.embeddings.opening import open_embeddings
from finc_eval.embeddings.recipe import CACHE_LAYOUT, Identity, recipe_of
from finc_eval.embeddings.stored.cell_block import ROWS, VALUES
from finc_eval.embeddings.stored.journal import Journal
from finc_eval.embeddings.subset import Subset
from finc_eval.embeddings.writer import CacheWriter, only_writer
from finc_eval.extractors.card import check_rules
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.cells import CLIP, STEPS, WINDOWS, CellTable, cell_table
from finc_eval.extractors.network import CardNetwork
from finc_eval.extractors.networks import load_backbone
from finc_eval.extractors.preprocess import normalize_values
from finc_eval.extractors.weights import check_weights
from finc_eval.gates.baseline import write_samples
from finc_eval.samples.clips import Clip
from finc_eval.samples.source import Manifest

CARD = load_card("efficientnet-lite0")
N, CHANNELS, BATCH = 10, 3, 4
TABLE = CellTable({"a": ("mean",)}, np.zeros(CHANNELS, np.float32), np.ones(CHANNELS, np.float32))
VALUES_OF_ALL = np.random.default_rng(1).integers(-STEPS, STEPS + 1, (N, WINDOWS, CHANNELS), dtype=np.int8)
ROWS_OF_ALL = np.random.default_rng(0).normal(size=(N, 5)).astype(np.float32)
IDS = [f"{number:03}.png" for number in range(N)]
REASONS = [None, None, "no image", *[None] * (N - 3)]
GOOD = np.array([0, 1, *range(3, N)])
IDENTITY = Identity("/data/gen", Manifest("folder", N, "m" * 64, {}), CARD.name, recipe_of(CARD, "float32"))


def write(writer, stop=N):
    for start in range(writer.done, stop, BATCH):
        here = np.arange(start, min(start + BATCH, stop))
        readable = VALUES_OF_ALL[[row for row in here if REASONS[row] is None]]
        content, reasons = here.astype(np.uint64), [REASONS[row] for row in here]
        writer.write(ROWS_OF_ALL[here], content, reasons, [None] * len(here), readable)


def make(path, stops=(N,), table=TABLE):
    """Write a file, in as many runs as there are stops; the first of them are cut off."""
    for stop in stops:
        with only_writer(path), CacheWriter(path, IDENTITY.key, IDS, {"embeddings": 5}, BATCH, cells=table) as writer:
            write(writer, stop)
            if stop == N:
                writer.finish(IDENTITY)
    return path


def altered(path, new, rows=None, **header):
    """Copy a file with other rows of cells, or without cells, and with other entries of the header."""
    with StoredFile(path, WHOLE, CACHE_LAYOUT) as old, new_file(new, WHOLE, CACHE_LAYOUT) as file:
        copy_content(old, file, (ROWS,) if rows is not None else (ROWS, VALUES))
        if rows is not None:
            file.array(ROWS, np.array(rows, np.int64))
        file.header |= header
        file.header = {name: value for name, value in file.header.items() if value is not ...}
    return new


@pytest.fixture(scope="module")
def pixels():
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (5, 9, 9, 3), dtype=np.uint8)
    images = [np.asarray(Image.fromarray(image).resize((224, 224), Image.Resampling.BICUBIC)) for image in small]
    return torch.from_numpy(np.stack(images))


@pytest.fixture(scope="module")
def embedder():
    return CardNetwork(CARD, "cpu")


def test_cells_are_the_centered_maps_of_the_blocks(pixels, embedder):
    _, cells = embedder.with_cells(pixels)
    network = load_backbone(CARD, torch.device("cpu"), check_weights(CARD)[0])
    with torch.inference_mode():
        maps = network.act1(network.bn1(network.conv_stem(normalize_values(pixels, CARD.preprocessing))))
        parts = []
        for number, block in enumerate(network.blocks[:5]):
            maps = block(maps)
            if number in (1, 2, 4):
                windows = maps.unflatten(3, (7, -1)).unflatten(2, (7, -1)).transpose(3, 4).flatten(4)
                parts += [windows.mean(-1)] + [windows.std(-1, correction=0)] * (number < 4)
    table = cell_table(CARD)
    values = torch.cat(parts, 1).flatten(2).transpose(1, 2).numpy()
    expected = ((values - table.center) / table.scale).clip(-CLIP, CLIP) * STEPS / CLIP
    assert cells.shape == (5, 49, 240) and cells.dtype == torch.int8
    assert abs(cells.numpy() - expected).max() <= 0.51  # a number in the middle may be rounded either way
    assert 10 < cells.float().std() < 60  # 25 is one standard deviation of photographs


def test_cells_and_embeddings_do_not_depend_on_the_batch_or_on_each_other(pixels, embedder):
    rows, cells = embedder.with_cells(pixels)
    alone = torch.cat([embedder.with_cells(image)[1] for image in pixels.flip(0).split(1)]).flip(0)
    assert (cells.int() - alone.int()).abs().max() <= 1
    plain, none = CardNetwork(replace(CARD, cells=None), "cpu").with_cells(pixels)
    assert none is None and torch.equal(rows, plain)


def test_cells_come_back_with_the_rows_of_readable_samples(tmp_path):
    cells = EmbeddingCache(make(tmp_path / "gen.h5")).cells
    np.testing.assert_array_equal(cells.values, VALUES_OF_ALL[GOOD])
    np.testing.assert_array_equal(cells.rows, np.arange(len(GOOD)))
    assert (cells.space, len(cells)) == (TABLE.space, N - 1)


@pytest.mark.parametrize("stops", [(4, N), (8, N), (4, 8, N)])
def test_a_run_that_was_cut_off_ends_with_the_same_bytes(tmp_path, stops):
    resumed, whole = make(tmp_path / "a.h5", stops), make(tmp_path / "b.h5")
    assert resumed.read_bytes() == whole.read_bytes()


def test_a_record_cut_in_the_middle_is_made_again(tmp_path):
    path, whole = tmp_path / "a.h5", make(tmp_path / "b.h5")
    make(path, (8,))
    part = path.with_name("a.h5.part")
    part.write_bytes(part.read_bytes()[:-100])
    with only_writer(path), CacheWriter(path, IDENTITY.key, IDS, {"embeddings": 5}, BATCH, cells=TABLE) as writer:
        assert writer.done == 4
    assert make(path).read_bytes() == whole.read_bytes()


def test_other_batches_keep_the_cells_of_the_first_samples(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    make(path, (4,))
    monkeypatch.setitem(globals(), "BATCH", 3)  # 3 of the 4 samples are a whole batch, and one of these has failed
    cells = EmbeddingCache(make(path)).cells
    np.testing.assert_array_equal(cells.values, VALUES_OF_ALL[GOOD])


def test_the_smallest_hashes_are_kept_however_they_come(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_CELLS", 4)
    hashes = string_hashes(IDS)
    chosen = np.sort(hashes.argsort()[:4])
    for sizes in ((N,), (1,) * N, (3, 5, 2)):
        portions = np.split(hashes, np.cumsum(sizes)[:-1])
        np.testing.assert_array_equal(rows_with_cells(portions), chosen)
    records = []
    monkeypatch.setattr(
        Journal, "append", lambda self, batch, old=Journal.append: (records.append(batch), old(self, batch))
    )
    cells = EmbeddingCache(make(tmp_path / "gen.h5")).cells
    np.testing.assert_array_equal(GOOD[cells.rows], [row for row in chosen if row != 2])
    np.testing.assert_array_equal(cells.values, VALUES_OF_ALL[GOOD[cells.rows]])
    assert sum(len(batch.cells) for batch in records) == len(cells)  # the disk has no others


@pytest.mark.parametrize(
    "rows", [[1, 0, 2, 3, 4, 5, 6, 7, 8], [0, 1, 2, 3, 4, 5, 6, 7, 9], [-1, 1, 2, 3, 4, 5, 6, 7, 8]]
)
def test_rows_of_cells_that_are_not_of_the_set_are_refused(tmp_path, rows):
    path = altered(make(tmp_path / "gen.h5"), tmp_path / "forged.h5", rows)
    with EmbeddingCache(path) as cache, pytest.raises(DataError) as caught:
        _ = cache.cells
    assert str(caught.value) == (
        f"{path} is damaged (its cells are not of 9 samples in their order): delete it and run finc-eval extract again"
    )


def test_cells_of_another_number_of_rows_are_refused(tmp_path):
    path = altered(make(tmp_path / "gen.h5"), tmp_path / "forged.h5", [0, 1])
    assert "is damaged (cells/rows has the shape (2,)" in message(EmbeddingCache, path)


def test_a_changed_byte_of_the_cells_is_found(tmp_path):
    path = make(tmp_path / "gen.h5")
    data, cells = path.read_bytes(), VALUES_OF_ALL[GOOD].tobytes()
    path.write_bytes(data.replace(cells, cells[:50] + bytes([cells[50] ^ 1]) + cells[51:]))
    with EmbeddingCache(path) as cache:
        assert "cells/values is not what was written" in message(lambda: cache.cells)
        assert "cells/values" in cache.damage()
        np.testing.assert_array_equal(np.asarray(cache), ROWS_OF_ALL[GOOD])  # the embeddings are whole


def test_a_file_from_before_opens_without_cells_and_says_why(tmp_path):
    path = altered(make(tmp_path / "gen.h5"), tmp_path / "old.h5", cells=...)
    rows = CachedEmbeddings(EmbeddingCache(path))
    assert (rows.cells, rows.n) == (None, N - 1)
    assert rows.cells_absent == f"{path} was made before cells were kept: delete it and embed its samples again"
    assert CachedEmbeddings(EmbeddingCache(tmp_path / "gen.h5")).cells_absent == ""


def test_views_of_a_set_keep_the_cells_of_their_rows(tmp_path):
    rows = CachedEmbeddings(EmbeddingCache(make(tmp_path / "gen.h5")))
    part = Subset(rows, np.array([7, 0, 3]))
    np.testing.assert_array_equal(part.cells.values, VALUES_OF_ALL[GOOD[[7, 0, 3]]])
    np.testing.assert_array_equal(part.cells.rows, [0, 1, 2])
    inner = Subset(part, np.array([2, 0]))
    np.testing.assert_array_equal(inner.cells.values, VALUES_OF_ALL[GOOD[[3, 7]]])
    grouped = rows.with_groups(np.arange(rows.n, dtype=np.uint64) // np.uint64(3), "clip")
    for view in (rows.named("other"), grouped, rows.with_spellings({})):
        np.testing.assert_array_equal(view.cells.values, VALUES_OF_ALL[GOOD])


def test_a_subset_has_the_cells_of_those_that_are_kept():
    values = np.arange(3 * WINDOWS * 2).reshape(3, WINDOWS, 2).astype(np.int8)
    cells = Cells(values, np.array([1, 4, 6]), "x")
    part = cells.take(np.array([9, 6, 0, 1, 6]))
    np.testing.assert_array_equal(part.rows, [1, 3, 4])
    np.testing.assert_array_equal(part.values, values[[2, 0, 2]])
    assert len(part.take(np.array([0, 2])).rows) == 0 == len(part.take(np.array([0])).take(np.array([0])).rows)


def photographs(folder, n):
    rng = np.random.default_rng(2)
    folder.mkdir()
    for number in range(n):
        image = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).resize((32, 32))
        image.save(folder / f"{number:02}.png")
    return folder


def test_a_folder_opens_with_cells_and_its_shards_join_to_the_same_file(
    tmp_path, own_cache_folder, monkeypatch, embedder
):
    monkeypatch.setattr(SetExtraction, "_new_embedder", lambda self, size: embedder)
    monkeypatch.setattr(module, "MAX_CELLS", 3)
    folder = photographs(tmp_path / "set", 7)
    (folder / "03.png").write_bytes(b"no picture")
    whole = extract(folder, CARD.name, tmp_path / "whole.h5", batch_size=1)
    parts = [extract(folder, CARD.name, tmp_path / "gen.h5", shard=f"{i}/2", batch_size=1).path for i in (1, 2)]
    merged = fe.merge(parts, tmp_path / "merged.h5")
    assert merged.path.read_bytes() == whole.path.read_bytes()
    assert (whole.cells.space, whole.cells.values.shape[1:]) == (cell_table(CARD).space, (49, 240))
    assert len(whole.cells) in (2, 3)
    opened = open_embeddings({"gen": folder}, CARD.name, Run(batch_size=1))["gen"]
    np.testing.assert_array_equal(opened.cells.values, whole.cells.values)


def test_sets_without_cells_say_why(images, own_cache_folder):
    assert ArrayEmbeddings(np.ones((3, 2))).cells is None
    assert ArrayEmbeddings(np.ones((3, 2))).cells_absent == "arrays of embeddings come without cells"
    digits = CachedEmbeddings(extract(images[:4]))
    assert (digits.cells, digits.cells_absent) == (None, "pixels has no cells yet")


def test_cells_change_the_space_of_cells_and_not_that_of_embeddings():
    assert CARD.recipe == replace(CARD, cells=None).recipe
    wider = replace(TABLE, scale=TABLE.scale * 2)
    others = [wider, replace(TABLE, layers={"b": ("mean",)}), replace(TABLE, times=3)]
    assert len({TABLE.space, *(other.space for other in others)}) == 4


FAULTS = {
    "another digest": ({"sha256": "0" * 64}, "is not the table of cells that the card states"),
    "no such table": ({"table": "none.tsv"}, "none.tsv is not the table of cells that the card states"),
    "a layer of another network": ({"layers": {"blocks.9": ("mean",)}}, 'the network has no layer "blocks.9"'),
    "other numbers": ({"layers": {"blocks.1": ("mean",)}}, "have 24 numbers, their table 240"),
    "a path": ({"table": "../none.tsv"}, '"cells" must state layers, and the name of a table of finc-eval'),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_card_whose_cells_do_not_fit_is_refused(fault, pixels):
    changes, sentence = FAULTS[fault]
    card = replace(CARD, cells=replace(CARD.cells, **changes))

    def use():
        check_rules(card, "card x")
        CardNetwork(card, "cpu")(pixels[:1])

    assert sentence in message(use)


def test_a_baseline_keeps_the_cells_of_its_file(tmp_path):
    held = open_embeddings({"gen": str(make(tmp_path / "gen.h5"))}, None, Run())["gen"]
    opened = SimpleNamespace(at_hand=held, held=held, info=lambda: SimpleNamespace(name="gen"))
    (tmp_path / "baseline").mkdir()
    kept = EmbeddingCache(tmp_path / "baseline" / write_samples(opened, tmp_path / "baseline"))
    np.testing.assert_array_equal(kept.cells.values, VALUES_OF_ALL[GOOD])


def test_clips_have_cells_only_of_their_frames():
    card = CARD.by_frames()
    check_rules(card, "card x")
    short = replace(card, clip=replace(card.clip, frames=2))
    for wrong in (replace(card, output=CARD.output), short):
        assert '"cells" of clips are those of three or more frames' in message(check_rules, wrong, "card x")


def test_cells_of_a_clip_are_means_over_thirds_of_its_frames(pixels):
    card = replace(CARD.by_frames(), clip=Clip(5, 1, 1, "hold"))
    frames = CardNetwork(CARD, "cpu").with_cells(pixels)[1].float()
    _, cells = CardNetwork(card, "cpu").with_cells(torch.stack([pixels, pixels.flip(0)]))
    thirds = torch.cat([part.mean(0) for part in (frames[:2], frames[2:4], frames[4:])])
    back = torch.cat([part.mean(0) for part in (frames[3:], frames[1:3], frames[:1])])
    assert cells.shape == (2, 147, 240)
    # Numbers of frames are clipped before they are a mean, and those of clips after it.
    for found, expected in zip(cells.float(), (thirds, back), strict=True):
        apart = (found - expected).abs()
        assert apart.median() < 0.6 and (apart > 3).float().mean() < 0.02


def test_cells_of_clips_come_back_and_count_as_three_pictures(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_CELLS", 9)
    table, path = replace(TABLE, times=3), tmp_path / "gen.h5"
    values = np.concatenate([VALUES_OF_ALL] * 3, 1)
    monkeypatch.setitem(globals(), "VALUES_OF_ALL", values)
    cells = EmbeddingCache(make(path, table=table)).cells
    assert (cells.values.shape[1:], cells.space) == ((147, CHANNELS), table.space)
    assert len(cells) == len(set(np.argsort(string_hashes(IDS))[:3]) & set(GOOD))
    np.testing.assert_array_equal(cells.values, values[GOOD][cells.rows])


def test_networks_of_clips_have_no_cells_yet(tmp_path, own_cache_folder):
    clips = np.random.default_rng(0).integers(0, 256, (4, 8, 16, 16, 3), dtype=np.uint8)
    found = CachedEmbeddings(extract(clips, "motion"))
    assert (found.cells, found.cells_absent) == (None, "motion has no cells yet")
