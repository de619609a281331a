"""URLs, and their places on the local disk."""

from pathlib import Path

import pytest

import finc_eval as fe
from finc_eval.core import places
from finc_eval.core.errors import UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(places.VARIABLES["remote"], str(tmp_path / "remote"))
    return tmp_path / "remote"


@pytest.mark.parametrize("given", ["s3://bucket/a/x.h5", "S3://bucket/a/x.h5", Path("s3://bucket/a/x.h5")])
def test_a_url_is_known_also_where_a_path_has_taken_a_slash_from_it(given):
    assert places.url_of(given) == "s3://bucket/a/x.h5"


@pytest.mark.parametrize("given", ["a/b", "/a/b", "C:/a", "a:b", "file:///a/b", "name=s3://bucket/x", Path("x.h5")])
def test_a_path_is_not_a_url(given):
    assert places.url_of(given) is None


def test_a_file_url_is_a_path():
    assert places.disk_path("file:///a/b%20c.npz") == Path("/a/b c.npz")
    with pytest.raises(fe.UsageError, match="names the machine home: a local file is file:///path"):
        places.disk_path("file://home/x")


def test_an_unknown_protocol_is_refused():
    with pytest.raises(fe.UsageError, match="unknown protocol ftp: pass a path, or a URL that begins with file://, s3"):
        places.url_of("ftp://host/x")


def test_a_place_names_its_url_and_no_secret(folder):
    copy = places.copy_path("https://me:word@host/a/x.npz?token=secret", "1")
    assert places.place_of(copy) == "https://host/a/x.npz"
    assert places.with_urls(f"{copy} is damaged") == "https://host/a/x.npz is damaged"
    assert copy != places.copy_path("https://me:word@host/a/x.npz?token=secret", "2")
    out = places.out_path(Path("s3://bucket/r/x.h5"))
    assert out.name == "x.h5" and places.target_of(out) == "s3://bucket/r/x.h5" and not places.is_copy(out)
    assert places.place_of("x") == str(Path("x").absolute()) and places.target_of(Path("x")) is None


@pytest.mark.parametrize("key", ["../../x", "a//b", "./x", "...", "a/..", "~0123456789abcdef/x", "100%/x", "a\\..\\b"])
def test_no_name_of_an_object_leads_out_of_the_folder(folder, key):
    for path in (places.copy_path(f"s3://bucket/{key}", "1"), places.out_path(f"s3://bucket/{key}")):
        assert path.resolve() == path and path.is_relative_to(folder)
        assert places.place_of(path) == f"s3://bucket/{key}".rstrip("/")


def test_a_web_server_is_only_read():
    with pytest.raises(fe.UsageError, match=r"https://host/x.h5 can only be read: name an output in an object store"):
        places.out_path("https://host/x.h5")


@pytest.mark.parametrize(
    "path", ["x" * 5000, "folder/" + "é" * 200 + ".h5", "a\0b.h5"], ids=["long", "in bytes", "NUL"]
)
def test_a_path_that_no_file_can_have_is_refused_in_one_sentence(path):
    for use in (fe.load, lambda one: fe.compare(one, one), lambda one: fe.kinds({"a": one, "b": one})):
        with pytest.raises(UsageError, match="is not a path that can be looked up") as error:
            use(path)
        assert len(str(error.value)) < 200
