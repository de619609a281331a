"""`finc-eval.toml` of a folder may be somebody else's: no key opens a file outside, or asks for endless work."""

import itertools
import os
import sys
from functools import cache
from importlib import resources

import numpy as np
import pytest
from _guarded import guarded, is_sentence
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import PARTS, VERBS, app, load_verb
from finc_eval.cli.options import TABLES
from finc_eval.core.record import Configured, named_files, schema
from finc_eval.samples.metadata import LIST_SUFFIXES

CARD = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text()

VERBS_OF_TABLES = {
    "extract": "extract imgs --extractor pixels --out o.h5",
    "extract sketch": "extract sketch ref.npy --out s.h5",
    "compare": "compare --gen gen.npy --ref ref.npy --out o",
    "compare methods": "compare methods --gen gen.npy --ref ref.npy --out o",
    "compare sweep": "compare sweep --gen gen.npy --ref ref.npy --parameter rho --values 1,2 --out o",
    "kinds": "kinds gen.npy --ref ref.npy --out o",
    "metrics": "metrics --gen gen.npy --ref ref.npy --metrics fd",
    "evaluate": "evaluate --gen gen.npy --ref ref.npy --out o",
    "leaderboard": "leaderboard a=gen.npy --ref ref.npy --out o",
    "leaderboard add": "leaderboard add o a=gen.npy --ref ref.npy",
    "gate": "gate --gen gen.npy --baseline gen.npy --ref ref.npy --out o",
    "audit": "audit --gen gen.npy --train ref.npy --holdout ref.npy --out o",
    "score": "score gen.npy --comparison old.h5 --out o.csv",
    "private sketch release": "private sketch release --data gen.npy --public ref.npy --dims 2 --ledger l --budget 1 "
    "--epsilon 1 --out p.h5",
    "private generate": "private generate --data gen.npy --ledger l --budget 1 --epsilon 1 --out p.npz",
    "kahm fit": "kahm fit gen.npy --out k.h5",
}
"""A command of each verb that reads a table of the file."""


def settings_classes(cls=Configured):
    for one in cls.__subclasses__():
        yield one
        yield from settings_classes(one)


for verb, parts in ((verb, PARTS.get(verb, {})) for verbs in VERBS.values() for verb in verbs):
    for part in (None, *parts):
        load_verb(verb, part)  # settings are known when their verbs are imported
CLASSES = [one for one in dict.fromkeys(settings_classes()) if one.__module__.startswith("finc_eval.")]


def texts_in(node, found):
    """Whether a JSON Schema takes any text: the words of a list are chosen from, and are none."""
    if node.get("type") == "string" and not {"enum", "const"} & node.keys():
        return True
    return any(texts_in(one, found) for one in [*node.get("anyOf", ()), *filter(None, [node.get("items")])])


KEYS = [
    (one.table, name)
    for one in CLASSES
    for name, node in schema(one)["properties"].items()
    if texts_in(node, schema(one))
]
"""All keys of all tables whose values are texts."""

FILES = {
    ("extract", "extractor"): (".toml",),
    ("extract", "prompts"): LIST_SUFFIXES,
    ("compare", "text"): (".npy", ".h5", ".toml", ".csv"),
}
"""Keys that may name a file, and suffixes of those files."""

PLACES = {
    "up": "../{out}/secret{suffix}",
    "up and down": "imgs/../../{out}/secret{suffix}",
    "up with a dot": "./../{out}/secret{suffix}",
    "absolute": "{whole}/secret{suffix}",
    "two slashes": "/{whole}/secret{suffix}",
    "a home": "~/secret{suffix}",
    "the home of a user": "~root/secret{suffix}",
    "a link to a file": "to-file{suffix}",
    "a link to a link": "to-link{suffix}",
    "a link to a folder": "to-folder/secret{suffix}",
    "a link up": "to-parent/{out}/secret{suffix}",
    "a link to nothing": "to-nothing{suffix}",
    "a link to a device": "to-device{suffix}",
    "a pipe": "pipe{suffix}",
    "a folder": "folder{suffix}",
    "an address of a file": "file://{whole}/secret{suffix}",
    "an address in capitals": "FILE://{whole}/secret{suffix}",
    "an address of one slash": "file:{whole}/secret{suffix}",
    "a web server": "http://127.0.0.1:9/secret{suffix}",
    "a web server in capitals": "HTTPS://127.0.0.1:9/secret{suffix}",
    "a store": "s3://bucket/secret{suffix}",
    "another store": "gs://bucket/secret{suffix}",
    "a chain of addresses": "zip://secret::http://127.0.0.1:9/a{suffix}",
    "a drive": "C:/secret{suffix}",
    "a backslash": "..\\\\{out}\\\\secret{suffix}",
    "NUL": "secret\\u0000{suffix}",
    "half a path": "../{out}/secret{suffix}/",
}
"""Values, as TOML writes them, that lead to no file of the working folder."""

SUFFIXES = sorted({suffix for suffixes in FILES.values() for suffix in suffixes})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A working folder that somebody sent, and a place beside it with secrets."""
    home = tmp_path_factory.mktemp("home")
    place, out, random = home / "place", home / "out", np.random.default_rng(0)
    (place / "imgs").mkdir(parents=True)
    out.mkdir()
    for number in range(3):
        Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(place / "imgs" / f"{number}.png")
    for name in ("gen", "ref"):
        np.save(place / f"{name}.npy", random.standard_normal((120, 3)).astype(np.float32))
    fe.compare(place / "gen.npy", place / "ref.npy", features=20, modes=1).save(place / "old.h5")
    (place / "gate.toml").write_text("[metrics.fd]\nmost = 9.0\n")
    for suffix in SUFFIXES:
        (out / f"secret{suffix}").write_text(CARD if suffix == ".toml" else "TOPSECRET\n" * 3)
        for name, target in {
            "to-file": out / f"secret{suffix}",
            "to-link": f"to-file{suffix}",
            "to-nothing": out / f"new{suffix}",
            "to-device": "/dev/zero",
        }.items():
            (place / f"{name}{suffix}").symlink_to(target)
        os.mkfifo(place / f"pipe{suffix}")
        (place / f"folder{suffix}").mkdir()
    (place / "to-folder").symlink_to(out)
    (place / "to-parent").symlink_to("..")
    (place / "linked.png").symlink_to("imgs/0.png")
    return place, out


@pytest.fixture
def sent(made, monkeypatch):
    place, out = made
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(out))
    monkeypatch.setenv("FINC_EVAL_CACHE", str(out.parent / "caches"))
    yield place, out
    for name in ("finc-eval.toml", "o.h5", "net.toml"):
        (place / name).unlink(missing_ok=True)


watched: list[str] | None = None
"""What was opened and asked for, while a test looks."""


def watch(event, arguments):
    if watched is not None and event in ("open", "socket.connect", "socket.getaddrinfo", "os.listdir", "os.scandir"):
        watched.append(str(arguments[0] if event != "socket.connect" else arguments[1]))


@cache
def watch_this_process():
    """Add `watch` when a test first needs it: Python calls it at each `id()` from then on, and never takes it out."""
    sys.addaudithook(watch)


def run(words):
    """Run a command; return its exit code, what it printed, and the paths and addresses that it asked for."""
    global watched
    watch_this_process()
    watched = []
    try:
        done = CliRunner().invoke(app, [*words.split(), "--quiet"])
        return done.exit_code, " ".join(done.output.split()), watched
    finally:
        watched = None


def leads_out(asked, out):
    """Whether something that was opened lies outside, or is an address."""
    return [one for one in asked if "secret" in one or "127.0.0.1" in one or os.path.realpath(one).startswith(str(out))]


def test_all_keys_that_may_name_a_file_are_marked_where_they_are_declared():
    defaults = {".toml": "x.toml", ".npy": "x.npy", ".csv": "x.csv"}
    found = set()
    for one, value in itertools.product(CLASSES, defaults.values()):
        for name in (name for table, name in KEYS if table == one.table):
            try:
                settings = one(**{name: value})
            except fe.FincEvalError:
                continue
            found |= {(one.table, name) for name in named_files(settings)}
    assert found == set(FILES)
    assert {table for table, _ in KEYS} <= {one.table for one in CLASSES} == set(TABLES)


@pytest.mark.one_of_each("form", "key")
@pytest.mark.parametrize("key", FILES, ids=".".join)
@pytest.mark.parametrize("form", PLACES)
def test_a_key_that_names_a_file_outside_of_the_folder_is_one_sentence(sent, key, form):
    place, out = sent
    table, name = key
    words = VERBS_OF_TABLES[table] if name != "extractor" else "extract imgs --out o.h5"
    for suffix in FILES[key]:
        value = PLACES[form].format(out=out.name, whole=out, suffix=suffix)
        (place / "finc-eval.toml").write_text(f'[{table}]\n{name} = "{value}"\n')
        code, text, asked = run(words)
        if form == "half a path" and name == "extractor":
            assert code == 3 and "unknown extractor" in text
        else:
            assert code == 3 and f"as {name}, which must be a file of this folder: pass --{name} if you" in text, text
        assert leads_out(asked, out) == [] and "TOPSECRET" not in text
        assert not (place / "o.h5").exists()


@pytest.mark.one_of_each("key", "verb")
@pytest.mark.parametrize("verb", VERBS_OF_TABLES)
@pytest.mark.parametrize("key", FILES, ids=".".join)
def test_no_verb_opens_a_file_outside_that_a_table_names(sent, verb, key):
    place, out = sent
    table, name = key
    (place / "finc-eval.toml").write_text(f'[{table}]\n{name} = "../{out.name}/secret{FILES[key][0]}"\n')
    _, text, asked = run(VERBS_OF_TABLES[verb])
    assert leads_out(asked, out) == [] and "TOPSECRET" not in text and "mistake in finc-eval" not in text


@pytest.mark.one_of_each(by=lambda case: case.split(".")[0])
@pytest.mark.parametrize("key", [key for key in KEYS if key not in FILES], ids=".".join)
def test_the_texts_of_all_other_keys_open_no_file(sent, key):
    place, out = sent
    table, name = key
    words = {"run": "extract", "sketch": "extract sketch", "methods": "compare methods"}.get(table, table)
    listed = name in ("include", "exclude", "metrics")
    for form in ("absolute", "a link to a file", "a web server"):
        value = PLACES[form].format(out=out.name, whole=out, suffix=".csv")
        written = f'["{value}"]' if listed else f'"{value}"'
        (place / "finc-eval.toml").write_text(f"[{table}]\n{name} = {written}\n")
        code, text, asked = run(VERBS_OF_TABLES[words])
        assert leads_out(asked, out) == [] and "TOPSECRET" not in text
        assert code in (0, 3) and "mistake in finc-eval" not in text, text


@pytest.mark.parametrize("more", [":frames", ":frames:frames"])
def test_the_frames_of_a_network_are_a_network(sent, more):
    place, out = sent
    (place / "net.toml").write_text(CARD.replace('kind = "pixels"', 'kind = "torchscript"'))
    for key, words in (("extractor", "extract imgs --out o.h5"), ("extractor", "kinds a=imgs b=imgs --out o")):
        (place / "finc-eval.toml").write_text(f'[extract]\n{key} = "net.toml{more}"\n')
        code, text, _ = run(words)
        assert code == 3 and "chooses the network of net.toml as extractor: pass --extractor if you trust it" in text
        (place / "finc-eval.toml").write_text(f'[extract]\n{key} = "../{out.name}/secret.toml{more}"\n')
        code, text, asked = run(words)
        assert code == 3 and "must be a file of this folder" in text and leads_out(asked, out) == []


CHOOSING = {
    "a network in extractor": ("extract", "extractor", 'kind = "timm"', ""),
    "a program in extractor": ("extract", "extractor", 'kind = "torchscript"', ""),
    "weights in extractor": (
        "extract",
        "extractor",
        'kind = "pixels"',
        '[weights]\nfile = "/etc/hostname"\nlicense = "x"\n',
    ),
    "a text tower": ("compare", "text", 'kind = "timm"', ""),
}


@pytest.mark.parametrize("form", CHOOSING)
def test_a_card_of_the_folder_may_choose_no_network_and_no_weights(sent, form):
    place, _ = sent
    table, name, kind, more = CHOOSING[form]
    (place / "net.toml").write_text(CARD.replace('kind = "pixels"', kind) + more)
    (place / "finc-eval.toml").write_text(f'[{table}]\n{name} = "net.toml"\n')
    code, text, asked = run("extract imgs --out o.h5" if table == "extract" else VERBS_OF_TABLES[table])
    assert code == 3 and f"chooses the network of net.toml as {name}: pass --{name} if you trust it" in text
    assert "/etc/hostname" not in asked


def test_files_of_the_folder_and_names_that_are_no_files_are_taken(sent):
    place, _ = sent
    (place / "imgs" / "prompts.csv").write_text("file_name,prompt\n0.png,a\n1.png,b\n2.png,c\n")
    (place / "own.toml").write_text(CARD)
    (place / "pixels").mkdir()  # a folder of the same name as an extractor
    for extractor, prompts in (
        ("own.toml", "imgs/prompts.csv"),
        ("pixels", "imgs/prompts.csv"),
        ("./own.toml", "./imgs/prompts.csv"),
    ):
        (place / "finc-eval.toml").write_text(f'[extract]\nextractor = "{extractor}"\nprompts = "{prompts}"\n')
        code, text, _ = run("extract imgs --out taken.h5 --force")
        assert code == 0, text
        assert fe.load(place / "taken.h5").prompts == ["a", "b", "c"]


def test_the_command_line_and_a_file_that_it_names_may_name_any_place(sent):
    place, out = sent
    (out / "prompts.csv").write_text("file_name,prompt\n0.png,a\n1.png,b\n2.png,c\n")
    outside = f'[extract]\nextractor = "pixels"\nprompts = "../{out.name}/prompts.csv"\n'
    (place / "mine.toml").write_text(outside)
    (place / "finc-eval.toml").write_text(outside)
    words = "extract imgs --out named.h5 --force"
    assert run(words)[0] == 3
    for more in (f"--prompts ../{out.name}/prompts.csv", "--config mine.toml", "--config finc-eval.toml"):
        code, text, _ = run(f"{words} {more}")
        assert code == 0, text
        assert fe.load(place / "named.h5").prompts == ["a", "b", "c"]


# Endless work


@pytest.mark.one_of_each
@pytest.mark.parametrize("features", [10_001, 100_000_000, 10**12, 10**19])
@pytest.mark.parametrize("verb", ["compare", "compare methods", "compare sweep", "evaluate", "extract sketch"])
def test_a_number_of_features_that_no_memory_holds_is_one_sentence_at_once(sent, tmp_path, verb, features):
    place, _ = sent
    table = "sketch" if verb == "extract sketch" else "compare"
    (place / "finc-eval.toml").write_text(f"[{table}]\nfeatures = {features}\n")
    code, text = guarded(f"{VERBS_OF_TABLES[verb]} --quiet", place, tmp_path / "told")
    at_most = "features must be a whole number of at most" if features > 2**63 else "features must be at most 10,000"
    assert code == 3 and is_sentence(text) and at_most in text, text
