"""Sets, embeddings and results in an object store, from the first image to the page."""

import io
import tarfile

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.remote import mirror

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (24, 8, 8, 3), dtype=np.uint8)


def png(pixels):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def shard(numbers):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for number in numbers:
            data = png(IMAGES[number])
            header = tarfile.TarInfo(f"{number:02}.png")
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    return stream.getvalue()


@pytest.fixture
def folder(s3):
    for number, pixels in enumerate(IMAGES):
        s3.files.pipe(f"bucket/gen/{'ab'[number % 2]}/{number:02}.png", png(pixels))
    s3.files.pipe("bucket/gen/.hidden/x.png", b"")
    s3.files.pipe("bucket/gen/notes.log", b"1")
    s3.forget()
    return f"{s3.url}/gen"


def pixels_of(source):
    return [(one.id, one.pixels.tobytes()) for one in fe.open_source(source).samples()]


@pytest.mark.long
def test_a_folder_is_read_like_one_of_this_machine(s3, folder, tmp_path):
    s3.files.get(folder, str(tmp_path / "gen"), recursive=True)
    there, here = fe.open_source(folder), fe.open_source(tmp_path / "gen")
    assert (there.ids, there.labels, there.ignored) == (here.ids, here.labels, here.ignored)
    assert there.name == "s3://bucket/gen" and there.manifest() == here.manifest()
    assert pixels_of(f"{folder}/") == pixels_of(tmp_path / "gen")


@pytest.mark.parametrize("pattern", ["wds", "wds/s-{00..01}.tar"])
def test_tar_shards_are_read_by_folder_and_by_pattern(s3, pattern, tmp_path):
    for number in range(2):
        s3.files.pipe(f"bucket/wds/s-{number:02}.tar", shard(range(12 * number, 12 * number + 12)))
    found = pixels_of(f"{s3.url}/{pattern}")
    assert [name for name, _ in found][:2] == ["s-00/00", "s-00/01"]
    assert [data for _, data in found] == [one.tobytes() for one in IMAGES]


def test_shards_of_more_bytes_than_the_copies_may_have_are_read_all_the_same(s3, monkeypatch, tmp_path):
    for number in range(6):
        s3.files.pipe(f"bucket/wds/s-{number:02}.tar", shard(range(4 * number, 4 * number + 4)))
    monkeypatch.setenv(mirror.LIMIT, "40kB")
    assert [data for _, data in pixels_of(f"{s3.url}/wds")] == [one.tobytes() for one in IMAGES]
    assert sum(one.stat().st_size for one in (tmp_path / "remote").rglob("*.tar")) <= 40_000


def test_a_missing_shard_of_a_pattern_is_named(s3):
    s3.files.pipe("bucket/wds/s-00.tar", shard([0]))
    with pytest.raises(fe.DataError, match=r"^s3://bucket/wds/s-01.tar does not exist"):
        fe.open_source(f"{s3.url}/wds/s-{{00..01}}.tar")


def test_an_outage_is_not_taken_for_unreadable_samples(s3, folder, tmp_path):
    s3.broken, s3.only = ["503"] * 500, "05.png"
    with pytest.raises(fe.DataError, match=r"s3://bucket/gen/b/05.png could not be read in 5 attempts"):
        fe.extract(folder, "pixels", tmp_path / "gen.h5")
    assert not (tmp_path / "gen.h5").exists()


@pytest.mark.long
def test_embeddings_are_uploaded_once_they_are_whole_and_only_opened_after(s3, folder, tmp_path):
    local = fe.extract(folder, "pixels", tmp_path / "gen.h5")
    assert local.source == folder
    with fe.extract(folder, "pixels", f"{s3.url}/out/gen.h5") as cache:
        assert s3.files.cat("bucket/out/gen.h5") == cache.path.read_bytes()
    s3.forget()
    mirror._known.clear()
    fe.extract(folder, "pixels", f"{s3.url}/out/gen.h5").close()
    assert "PUT" not in [method for method, _ in s3.requests]
    with fe.load(f"{s3.url}/out/gen.h5") as again:
        assert (again.n, again.key, again.ids) == (local.n, local.key, local.ids)


@pytest.mark.long
def test_an_upload_that_fails_keeps_the_finished_part_for_the_next_run(s3, folder, tmp_path):
    s3.broken, s3.only, s3.method = ["503"] * 50, "gen.h5", "PUT"
    with pytest.raises(fe.DataError, match=r"s3://bucket/out/gen.h5 could not be written in 5 attempts"):
        fe.extract(folder, "pixels", f"{s3.url}/out/gen.h5")
    s3.forget()
    assert not s3.files.exists("bucket/out/gen.h5")
    assert [one.name for one in (tmp_path / "remote" / "out").rglob("*") if one.is_file()] == ["gen.h5.part"]
    fe.extract(folder, "pixels", f"{s3.url}/out/gen.h5").close()
    assert s3.files.exists("bucket/out/gen.h5")
    assert [one.name for one in (tmp_path / "remote" / "out").rglob("*") if one.is_file()] == ["gen.h5"]


def test_shards_of_hosts_that_share_only_a_bucket_are_merged(s3, folder, tmp_path):
    parts = [f"{s3.url}/out/gen.{i}-of-2.h5" for i in (1, 2)]
    for part in (1, 2):
        fe.extract(folder, "pixels", f"{s3.url}/out/gen.h5", shard=f"{part}/2").close()
    fe.merge(parts, f"{s3.url}/out/gen.h5").close()
    fe.extract(folder, "pixels", tmp_path / "gen.h5").close()
    assert s3.files.cat("bucket/out/gen.h5") == (tmp_path / "gen.h5").read_bytes()


def run(*arguments):
    return CliRunner().invoke(app, [*arguments, "--quiet"])


@pytest.mark.long
def test_a_comparison_goes_from_bucket_to_bucket(s3, folder):
    for number in range(24):
        s3.files.pipe(f"bucket/ref/{number:02}.png", png(255 - IMAGES[number]))
    sets = ["--gen", folder, "--ref", f"{s3.url}/ref", "--extractor", "pixels", "--features", "50"]
    done = run("compare", *sets, "--out", f"{s3.url}/report")
    assert done.exit_code == 0, done.stderr
    assert "s3://bucket/report/comparison.html (also .json and .h5)" in done.stdout
    page = s3.files.cat("bucket/report/comparison.html").decode()
    assert "data:image/" in page and "remote/in" not in page
    result = fe.load(f"{s3.url}/report/comparison.h5")
    assert result.gen.source == folder
    assert run("compare", *sets, "--out", f"{s3.url}/report").exit_code == 0
    sets[3] = f"{s3.url}/gen/a"
    other = run("compare", *sets, "--out", f"{s3.url}/report")
    assert other.exit_code == 3
    assert "s3://bucket/report/comparison.h5 exists, and this command with these inputs did not make it" in other.stderr


def test_arrays_sketches_and_metadata_come_by_url(s3, folder, tmp_path):
    stream = io.BytesIO()
    np.save(stream, RNG.normal(size=(60, 4)).astype(np.float32))
    s3.files.pipe("bucket/e.npy", stream.getvalue())
    s3.files.pipe(
        "bucket/m.csv", b"file_name,tone\n" + b"".join(f"{'ab'[i % 2]}/{i:02}.png,{i}\n".encode() for i in range(24))
    )
    stream = io.BytesIO()
    np.savez(stream, IMAGES)
    s3.files.pipe("bucket/x.npz", stream.getvalue())
    assert run("extract", "sketch", f"{s3.url}/e.npy", "--features", "20", "--out", f"{s3.url}/map.h5").exit_code == 0
    done = run(
        "extract", "sketch", f"{s3.url}/e.npy", "--feature-map-of", f"{s3.url}/map.h5", "--out", f"{s3.url}/s.h5"
    )
    assert done.exit_code == 0, done.stderr
    assert fe.Sketch.load(f"{s3.url}/s.h5").n == 60
    done = run("extract", folder, "--extractor", "pixels", "--metadata", f"{s3.url}/m.csv", "--out", f"{s3.url}/g.h5")
    assert done.exit_code == 0, done.stderr
    with fe.load(f"{s3.url}/g.h5") as cache:
        assert cache.column("tone") == [str(int(name[2:4])) for name in cache.ids]
    assert len(fe.open_source(f"{s3.url}/x.npz").ids) == 24
    assert fe.open_source(f"{s3.url}/x.npz").name == "s3://bucket/x.npz"


def test_pictures_are_not_fetched_because_a_file_names_their_url(s3, folder, tmp_path):
    fe.extract(folder, "pixels", tmp_path / "gen.h5").close()
    mirror._known.clear()
    s3.forget()
    from finc_eval.embeddings.cache import EmbeddingCache
    from finc_eval.embeddings.pictures import EmbeddedSamples

    with EmbeddingCache(tmp_path / "gen.h5") as cache:
        assert EmbeddedSamples(cache).pictures(cache.ids[:2]) is None
    assert s3.requests == []
    fe.open_source(folder)
    with EmbeddingCache(tmp_path / "gen.h5") as cache:
        assert len(EmbeddedSamples(cache).pictures(cache.ids[:2])) == 2
