"""A copy of a remote file is kept as the version that came, even if the file changed between two requests."""

from pathlib import Path

import pytest
from _object_store import BUCKET
from _web import Quiet, serving

from finc_eval.core.errors import DataError
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.remote import mirror, store

OLD, NEW, LONGER = b"old" * 1000, b"new" * 1000, b"long" * 1000


class Changing(Quiet):
    """A file that changes after `looks` requests; `states` are the headers by which its versions are told."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, body):
        server = self.server
        content = OLD if server.seen < server.looks else server.after
        server.seen += 1
        server.asked.append(self.command)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        for name in server.states:
            old = {"ETag": '"one"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}[name]
            self.send_header(name, old if content is OLD else old.replace("one", "two").replace("2024", "2025"))
        self.end_headers()
        if body:
            self.wfile.write(content)


@pytest.fixture
def web(no_copies):
    pytest.importorskip("aiohttp")
    with serving(Changing) as server:
        server.seen, server.looks, server.after, server.asked, server.states = 0, 1, NEW, [], ("ETag",)
        yield server


def forget():
    mirror._known.clear()


@pytest.mark.parametrize("states", [("ETag",), ("Last-Modified",), ("ETag", "Last-Modified")], ids="+".join)
def test_a_web_file_that_changes_before_it_is_read_is_kept_as_the_new_version(web, states):
    web.states = states
    copy = on_disk(f"{web.address}/x.bin")
    assert copy.read_bytes() == NEW and web.asked == ["HEAD", "GET"]
    assert on_disk(f"{web.address}/x.bin") == copy
    forget()
    assert on_disk(f"{web.address}/x.bin") == copy and web.asked == ["HEAD", "GET", "HEAD"]
    web.looks = web.seen + 10  # the old version is there again, and nothing was kept as it
    forget()
    assert on_disk(f"{web.address}/x.bin").read_bytes() == OLD


def test_a_web_file_that_changes_to_another_size_is_one_sentence_and_kept_as_nothing(web, tmp_path):
    web.after = LONGER
    with pytest.raises(DataError, match="has more than the 3,000 bytes that its server states: try again later"):
        on_disk(f"{web.address}/x.bin")
    assert [one for one in (tmp_path / "remote").rglob("*") if one.is_file()] == []
    forget()
    assert on_disk(f"{web.address}/x.bin").read_bytes() == LONGER


def test_a_web_file_without_versions_serves_one_process(web, tmp_path):
    web.states = ()
    assert on_disk(f"{web.address}/x.bin").read_bytes() == NEW
    (copy,) = [one for one in (tmp_path / "remote").rglob("*") if one.is_file()]
    assert copy == mirror.copy_path(f"{web.address}/x.bin", mirror.SESSION)


def changed_before(method, count, change, monkeypatch):
    """Change an object before each of the first requests of a kind."""
    real, left = getattr(store, method), [count]

    def changed(*arguments):
        if left[0]:
            left[0] -= 1
            change(left[0])
        return real(*arguments)

    monkeypatch.setattr(mirror, method, changed)


@pytest.mark.parametrize("size", ["same", "another"])
def test_an_object_that_changes_before_it_is_read_is_looked_up_again(s3, monkeypatch, size):
    after = NEW if size == "same" else LONGER
    s3.files.pipe(f"{BUCKET}/x.bin", OLD)
    changed_before("download", 1, lambda _: s3.files.pipe(f"{BUCKET}/x.bin", after), monkeypatch)
    copy = on_disk(f"{s3.url}/x.bin")
    assert copy.read_bytes() == after
    forget()
    assert on_disk(f"{s3.url}/x.bin") == copy
    s3.files.pipe(f"{BUCKET}/x.bin", OLD)
    forget()
    assert on_disk(f"{s3.url}/x.bin").read_bytes() == OLD


def test_an_object_that_changes_all_the_time_is_one_sentence_and_kept_as_nothing(s3, monkeypatch, tmp_path):
    s3.files.pipe(f"{BUCKET}/x.bin", OLD)
    changed_before("download", 9, lambda left: s3.files.pipe(f"{BUCKET}/x.bin", b"%d" % left * 10), monkeypatch)
    with pytest.raises(DataError, match=r"^s3://bucket/x.bin changed while it was read: run the same command again$"):
        on_disk(f"{s3.url}/x.bin")
    assert [one for one in (tmp_path / "remote").rglob("*") if one.is_file()] == []


def test_an_object_that_stays_is_asked_for_as_often_as_before(s3):
    s3.files.pipe(f"{BUCKET}/x.bin", OLD)
    s3.forget()
    assert on_disk(f"{s3.url}/x.bin").read_bytes() == OLD
    assert [method for method, _ in s3.requests] == ["HEAD", "GET"]


def test_objects_are_asked_for_over_one_connection(s3, monkeypatch):
    """A connection of its own for each object takes longer than the object."""
    over, real = [], store._only

    def only(*arguments):
        one = real(*arguments)
        over.append(one._s3)
        return one

    monkeypatch.setattr(store, "_only", only)
    for number in range(3):
        s3.files.pipe(f"{BUCKET}/{number}.bin", OLD)
        on_disk(f"{s3.url}/{number}.bin")
    assert len(over) == 3 and over[0] is not None and over[0] is over[1] is over[2]


class Plain:
    """A store that cannot be asked for a version, as that of gs:// may be."""

    def __init__(self, *contents, late=False):
        self.contents, self.looks, self.late = list(contents), 0, late

    def info(self, url):
        self.looks += 1
        return {"size": len(self.contents[0]), "etag": str(hash(self.contents[0])), "type": "file"}

    def get_file(self, url, path, callback):
        sent = self.contents[0]
        if len(self.contents) > 1:
            self.contents.pop(0)
        Path(path).write_bytes(sent if self.late else self.contents[0])


@pytest.mark.parametrize("late", [False, True], ids=["before it is sent", "after it was sent"])
@pytest.mark.parametrize("protocol", ["gs", "az", "hf"])
def test_of_a_store_without_conditions_a_file_is_looked_up_before_and_after(no_copies, monkeypatch, protocol, late):
    files = Plain(OLD, NEW, late=late)
    monkeypatch.setattr(store, "_store", lambda url: files)
    copy = on_disk(f"{protocol}://bucket/x.bin")
    assert copy.read_bytes() == NEW
    forget()
    assert on_disk(f"{protocol}://bucket/x.bin") == copy
    files.contents[:] = [OLD]
    forget()
    assert on_disk(f"{protocol}://bucket/x.bin").read_bytes() == OLD
