"""URLs, and their places on the local disk."""

from pathlib import Path

import pytest

import finc_eval as fe
from finc_eval.core.remote import urls


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(urls.FOLDER, str(tmp_path / "remote"))
    return tmp_path / "remote"


@pytest.mark.parametrize("given", ["s3://bucket/a/x.h5", "S3://bucket/a/x.h5", Path("s3://bucket/a/x.h5")])
def test_a_url_is_known_also_where_a_path_has_taken_a_slash_from_it(given):
    assert urls.url_of(given) == "s3://bucket/a/x.h5"


@pytest.mark.parametrize("given", ["a/b", "/a/b", "C:/a", "a:b", "file:///a/b", "name=s3://bucket/x", Path("x.h5")])
def test_a_path_is_not_a_url(given):
    assert urls.url_of(given) is None


def test_a_file_url_is_a_path():
    assert urls.disk_path("file:///a/b%20c.npz") == Path("/a/b c.npz")
    with pytest.raises(fe.UsageError, match="names the machine home: a local file is file:///path"):
        urls.disk_path("file://home/x")


def test_an_unknown_protocol_is_refused():
    with pytest.raises(fe.UsageError, match="unknown protocol ftp: pass a path, or a URL that begins with file://, s3"):
        urls.url_of("ftp://host/x")


def test_a_place_names_its_url_and_no_secret(folder):
    copy = urls.copy_path("https://me:word@host/a/x.npz?token=secret", "1")
    assert urls.place_of(copy) == "https://host/a/x.npz"
    assert urls.with_urls(f"{copy} is damaged") == "https://host/a/x.npz is damaged"
    assert copy != urls.copy_path("https://me:word@host/a/x.npz?token=secret", "2")
    out = urls.out_path(Path("s3://bucket/r/x.h5"))
    assert out.name == "x.h5" and urls.target_of(out) == "s3://bucket/r/x.h5" and not urls.is_copy(out)
    assert urls.place_of("x") == str(Path("x").absolute()) and urls.target_of(Path("x")) is None


@pytest.mark.parametrize("key", ["../../x", "a//b", "./x", "...", "a/..", "~0123456789abcdef/x", "100%/x", "a\\..\\b"])
def test_no_name_of_an_object_leads_out_of_the_folder(folder, key):
    for path in (urls.copy_path(f"s3://bucket/{key}", "1"), urls.out_path(f"s3://bucket/{key}")):
        assert path.resolve() == path and path.is_relative_to(folder)
        assert urls.place_of(path) == f"s3://bucket/{key}".rstrip("/")


def test_a_web_server_is_only_read():
    with pytest.raises(fe.UsageError, match=r"https://host/x.h5 can only be read: name an output in an object store"):
        urls.out_path("https://host/x.h5")
