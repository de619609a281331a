"""Files behind URLs: what a server that fails, lies or is not there leaves behind."""

import builtins
import threading
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from _web import Quiet, serving

import finc_eval as fe
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.remote import mirror
from finc_eval.core.storage import write_text, write_whole

DATA = bytes(range(256)) * 400


@pytest.fixture
def other_store(s3):
    """Requests of the test go to the server, and with the credentials, that the test then sets."""
    type(s3.files).clear_instance_cache()
    yield
    type(s3.files).clear_instance_cache()


def copies(tmp_path):
    return [path for path in (tmp_path / "remote" / "in").rglob("*") if path.is_file()]


def forget():
    mirror._known.clear()


def test_a_file_is_fetched_once_and_again_when_it_changes(s3, tmp_path):
    s3.files.pipe("bucket/x.bin", DATA)
    s3.forget()
    assert on_disk(f"{s3.url}/x.bin").read_bytes() == DATA
    forget()
    assert on_disk(Path(f"{s3.url}/x.bin")).name == "x.bin"
    assert [method for method, _ in s3.requests].count("GET") == 1
    s3.files.pipe("bucket/x.bin", DATA[::-1])
    forget()
    assert on_disk(f"{s3.url}/x.bin").read_bytes() == DATA[::-1]
    assert len(copies(tmp_path)) == 2


@pytest.mark.parametrize("fault", ["503", "cut", "short"])
def test_faults_that_pass_are_waited_out(s3, tmp_path, fault):
    s3.files.pipe("bucket/x.bin", DATA)
    s3.broken, s3.only = ["", fault, fault], "x.bin"
    assert on_disk(f"{s3.url}/x.bin").read_bytes() == DATA
    assert not s3.broken and len(copies(tmp_path)) == 1


@pytest.mark.parametrize(
    ("fault", "words"), [("503", "Service Unavailable"), ("short", "51,200 of 102,400 bytes arrived")]
)
def test_a_fault_that_stays_is_one_sentence_and_leaves_nothing(s3, tmp_path, fault, words):
    s3.files.pipe("bucket/x.bin", DATA)
    s3.broken, s3.only = ["", *[fault] * 50], "x.bin"
    with pytest.raises(
        fe.DataError, match=rf"s3://bucket/x.bin could not be read in 5 attempts \(.*{words}.*\): check"
    ):
        on_disk(f"{s3.url}/x.bin")
    assert copies(tmp_path) == []


def test_what_is_not_there_is_one_sentence_each(s3, monkeypatch):
    with pytest.raises(fe.DataError, match=r"^s3://bucket/no.npz does not exist: check the bucket and the name$"):
        on_disk(f"{s3.url}/no.npz")
    with pytest.raises(fe.DataError, match=r"^the bucket of s3://nobody/no.npz does not exist: check its name"):
        on_disk("s3://nobody/no.npz")
    s3.files.pipe("bucket/set/1.png", b"1")
    with pytest.raises(fe.DataError, match=r"^s3://bucket/set is a folder, and a file is needed here: name one of its"):
        fe.load(f"{s3.url}/set")


def test_without_credentials_the_sentence_names_them(other_store, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(fe.DataError, match=r"s3://bucket/x could not be looked up without credentials: set AWS_ACCESS"):
        on_disk("s3://bucket/x")


def test_without_a_network_the_sentence_says_so(other_store, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(
        fe.DataError, match=r"could not be looked up in 5 attempts \(.*127.0.0.1:9.*\): check the network"
    ):
        on_disk("s3://bucket/x")


def test_without_the_extra_the_sentence_has_the_command(monkeypatch):
    def without(name, *rest, **more):
        if name == "fsspec":
            raise ImportError("No module named 'fsspec'", name="fsspec")
        return original(name, *rest, **more)

    original = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        fe.UsageError, match=r's3://bucket/x needs a package .* \(fsspec\): pip install "finc-eval\[rem'
    ):
        on_disk("s3://bucket/x")


def test_copies_take_no_more_room_than_they_may(s3, tmp_path, monkeypatch):
    monkeypatch.setenv(mirror.LIMIT, "1MB")
    for number in range(15):
        s3.files.pipe(f"bucket/{number}.bin", DATA)
    for number in range(15):
        assert on_disk(f"{s3.url}/{number}.bin").read_bytes() == DATA
        assert sum(path.stat().st_size for path in copies(tmp_path)) <= 1_000_000
    assert len(copies(tmp_path)) >= 7
    assert on_disk(f"{s3.url}/0.bin").read_bytes() == DATA
    s3.files.pipe("bucket/large.bin", DATA * 11)
    with pytest.raises(fe.UsageError, match=r"large.bin has 1.13 MB, above the 1 MB of all copies: set FINC_EVAL_MAX_"):
        on_disk(f"{s3.url}/large.bin")


def test_threads_that_need_one_file_fetch_it_once(s3):
    s3.files.pipe("bucket/x.bin", DATA)
    s3.forget()
    threads = [threading.Thread(target=on_disk, args=(f"{s3.url}/x.bin",)) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [method for method, _ in s3.requests] == ["HEAD", "GET"]


def test_a_file_is_uploaded_whole_or_not_at_all(s3):
    with pytest.raises(ZeroDivisionError), write_whole(f"{s3.url}/a.txt") as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    s3.broken, s3.only, s3.method = ["503"] * 50, "a.txt", "PUT"
    with pytest.raises(fe.DataError, match=r"s3://bucket/a.txt could not be written in 5 attempts"):
        write_text(f"{s3.url}/a.txt", "whole")
    s3.forget()
    assert not s3.files.exists("bucket/a.txt")
    s3.broken, s3.only, s3.method = ["503", "503"], "a.txt", "PUT"
    write_text(f"{s3.url}/a.txt", "whole")
    assert s3.files.cat("bucket/a.txt") == b"whole"


def test_an_upload_has_a_checksum_that_the_server_compares(s3):
    seen = []
    app = s3._app
    s3._app = lambda environ, start: (seen.append(environ), app(environ, start))[1]
    try:
        write_text(f"{s3.url}/a.txt", "whole")
    finally:
        s3._app = app
    assert [one["HTTP_X_AMZ_CHECKSUM_CRC32"] for one in seen if one["REQUEST_METHOD"] == "PUT"]


def test_copies_and_urls_are_not_written_by_accident(s3):
    s3.files.pipe("bucket/x.txt", b"1")
    with pytest.raises(fe.UsageError, match=r"is a copy of a remote file and is not changed: choose another output"):
        write_text(on_disk(f"{s3.url}/x.txt"), "2")
    with pytest.raises(
        fe.UsageError, match=r"s3://bucket/ledger.jsonl cannot be used here: name a place on a local disk"
    ):
        mirror.check_writable(Path("s3://bucket/ledger.jsonl"))


class Web(Quiet):
    answers: ClassVar = []

    def do_GET(self):
        status = self.answers.pop(0) if self.answers else 200
        self.send_response(status)
        self.send_header("Content-Length", str(len(DATA) if status == 200 else 0))
        self.send_header("ETag", '"1"')
        self.end_headers()
        if status == 200 and self.command == "GET":
            self.wfile.write(DATA)

    do_HEAD = do_GET


@pytest.fixture
def web(no_copies):
    pytest.importorskip("aiohttp")
    with serving(Web) as server:
        yield server.address
    Web.answers = []


def test_a_web_server_is_read_and_its_faults_are_not_taken_for_missing_files(web):
    Web.answers = [503, 503]
    assert on_disk(f"{web}/x.npz?key=1").read_bytes() == DATA
    Web.answers = [404] * 4
    with pytest.raises(fe.DataError, match=r"/y.npz does not exist: check the bucket and the name$"):
        on_disk(f"{web}/y.npz?key=1")
    Web.answers = [503] * 50
    with pytest.raises(fe.DataError, match=r"/z.npz could not be looked up in 5 attempts \(503"):
        on_disk(f"{web}/z.npz")
    Web.answers = [403] * 4
    with pytest.raises(fe.DataError, match=r"/z.npz may not be looked up \(403"):
        on_disk(f"{web}/z.npz")


def test_an_array_behind_a_url_is_embeddings(web, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(50, 4)).astype("float32"))
    from finc_eval.embeddings.opening import as_embeddings

    assert as_embeddings(f"file://{tmp_path}/x.npy").n == 50
