"""Every verb replaces what it made of the same inputs, and nothing else without --force."""

from dataclasses import replace
from pathlib import Path
from shutil import copyfile, copytree

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.cli.output import output_folder
from finc_eval.core.storage import claims
from finc_eval.demo.planted import shipped_digits


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(*arguments):
    """Run a command that must be refused, and return its sentence."""
    result = run(*arguments)
    assert result.exit_code == 3, result.output
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith("finc-eval: ")]
    return sentence


def done(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Three folders of digits, the embeddings of two of them, and their comparison."""
    place = tmp_path_factory.mktemp("own")
    images, _ = shipped_digits()
    for start, name in enumerate(("gen", "ref", "other")):
        (place / name).mkdir()
        for number, image in enumerate(images[100 * start : 100 * start + 30]):
            Image.fromarray(image[::2, ::2]).save(place / name / f"{number:02}.png")
    for name in ("gen", "ref"):
        fe.extract(place / name, "pixels", place / f"{name}.h5")
    done(*compare(place, place / "out"))
    return place


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def compare(place, out, gen="gen.h5", *more):
    return (
        "compare",
        "--gen",
        place / gen,
        "--ref",
        place / "ref.h5",
        "--features",
        30,
        "--modes",
        1,
        "--pictures",
        0,
        "--out",
        out,
        *more,
    )


def test_a_comparison_replaces_its_own_and_not_that_of_other_sets_or_settings(made):
    done(*compare(made, made / "out"))
    before = (made / "out" / "comparison.h5").read_bytes()
    for others in (("ref.h5",), ("gen.h5", "--seed", 2)):
        assert "comparison.h5 exists, and this command with these inputs did not make it, or made it with other" in (
            refused(*compare(made, made / "out", *others))
        )
    assert (made / "out" / "comparison.h5").read_bytes() == before


@pytest.fixture(scope="module")
def elsewhere(made):
    """The same samples and embeddings at other places, and others."""
    for name in ("gen", "ref"):
        copytree(made / name, made / "moved" / name)
        copyfile(made / f"{name}.h5", made / "moved" / f"{name}-again.h5")
    for name in ("bare", "beside"):
        more = {} if name == "bare" else {"note": np.arange(3)}
        np.savez(made / f"{name}.npz", arr_0=shipped_digits()[0][100:130, ::2, ::2], **more)
    return made


DIGITS, SWEEP = "--gen gen --ref ref", "compare sweep --parameter sigma"


@pytest.mark.long
@pytest.mark.one_of_each("is_same")
@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("compare --gen gen.h5 --ref ref.h5", "compare --gen moved/gen-again.h5 --ref moved/ref-again.h5", True),
        ("compare --gen gen.h5 --ref ref.h5", "compare --gen moved/ref-again.h5 --ref moved/gen-again.h5", False),
        ("compare --gen gen --ref ref.h5", "compare --gen moved/gen --ref moved/ref", True),
        ("compare --gen gen --ref bare.npz", "compare --gen gen --ref beside.npz", True),
        ("kinds a=gen b=ref", "kinds a=moved/gen b=ref", True),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                (f"compare {DIGITS}", "compare --gen moved/gen --ref moved/ref --n 25", False),
                (f"compare {DIGITS}", "compare --gen moved/gen --ref moved/ref --extractor efficientnet-lite0", False),
                (f"evaluate {DIGITS}", "evaluate --gen moved/gen --ref ref", True),
                ("compare --gen gen --ref ref.h5", "compare --gen moved/gen --ref other", False),
                ("compare --gen gen --ref bare.npz", "compare --gen gen --ref absent.npz", False),
                (f"compare methods {DIGITS}", "compare methods --gen moved/gen --ref ref", True),
                (f"compare methods {DIGITS}", "compare methods --gen gen --ref moved/gen", False),
                (f"{SWEEP} {DIGITS}", f"{SWEEP} --gen moved/gen --ref ref", True),
                ("kinds a=gen b=ref", "kinds a=ref b=moved/gen", False),
            )
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_result_is_of_its_samples_wherever_they_are(elsewhere, tmp_path, monkeypatch, first, second, is_same):
    monkeypatch.chdir(elsewhere)
    out = tmp_path / "out"
    few = (
        ["--features", 20, *(["--modes", 2] if "methods" in first else []), "--out", out]
        if not first.startswith("kinds")
        else ["--out", out]
    )

    def command(text):
        is_embedded = ".h5" in text.split("--ref")[0] or "--extractor" in text
        return run(*text.split(), *few, *([] if is_embedded else ["--extractor", "pixels"]))

    assert (made := command(first)).exit_code == 0, made.output
    again = command(second)
    assert again.exit_code == (0 if is_same else 3), again.output
    assert is_same or "did not make it" in again.stderr or "does not exist" in again.stderr


def test_the_default_folder_is_named_by_the_sets(made):
    for suffix in ("", ".h5"):
        inputs = {label: str(made / f"{label}{suffix}") for label in ("gen", "ref")}
        assert output_folder("compare", "comparison", inputs, None, False).folder == Path("reports/gen-vs-ref")


def test_embeddings_are_not_replaced_by_those_of_another_set(made):
    sentence = refused("extract", made / "other", "--extractor", "pixels", "--out", made / "ref.h5")
    assert f"ref.h5 holds the embeddings of {made / 'ref'} by pixels, which would be lost" in sentence
    done("extract", made / "ref", "--extractor", "pixels", "--out", made / "ref.h5")
    assert fe.EmbeddingCache(made / "ref.h5").source == str(made / "ref")


def test_a_sketch_is_replaced_by_one_of_the_same_embeddings_and_settings_only(made, tmp_path):
    out = tmp_path / "s.h5"
    for _ in range(2):
        done("extract", "sketch", made / "ref.h5", "--out", out, "--features", 12)
    assert "did not make it" in refused("extract", "sketch", made / "ref.h5", "--out", out, "--features", 10)
    assert "did not make it" in refused("extract", "sketch", made / "gen.h5", "--out", out, "--features", 10)
    assert "did not make it" in refused("extract", "sketch", made / "ref.h5", "--out", made / "gen.h5")
    assert fe.load(out).feature_map.features == 12
    done("extract", "sketch", made / "gen.h5", "--out", out, "--features", 10, "--force")
    assert fe.load(out).feature_map.features == 10


def test_scores_replace_scores_of_the_same_samples_on_the_same_modes_only(made, tmp_path):
    out = tmp_path / "s.csv"
    score = ("score", "--comparison", made / "out" / "comparison.h5", made / "gen.h5", "--out")
    done(*score, out)
    done(*score, out)
    assert "must end in .csv" in refused(*score, tmp_path / "adult.toml")
    head, first, *_ = out.read_text().splitlines()
    for others in ("age,income\n41,12\n", f"{head}\nnobody{first[first.index(',') :]}\n", f"{head},age\n{first},41\n"):
        out.write_text(others)
        assert "did not make it" in refused(*score, out)
        assert out.read_text() == others
    done(*score, out, "--force")


def test_scores_of_other_samples_with_the_same_ids_are_not_lost(made, tmp_path):
    out, rows = tmp_path / "s.csv", np.random.default_rng(0).standard_normal((30, 28 * 28 * 3)).astype(np.float32)
    score = ("score", "--comparison", made / "out" / "comparison.h5", "--out", out)
    for name, some in {"all": rows, "first": rows[:20], "others": rows[::-1]}.items():
        np.save(tmp_path / f"{name}.npy", some)
    done(*score, tmp_path / "all.npy")
    before = out.read_text()
    for others in ("first", "others"):
        assert "did not make it" in refused(*score, tmp_path / f"{others}.npy")
        assert out.read_text() == before
    done(*score, tmp_path / "all.npy")


def test_a_report_replaces_the_page_of_its_own_comparison_only(made, tmp_path):
    report = ("report", made / "out" / "comparison.h5")
    done(*report)
    done(*report, "--out", tmp_path / "p.html")
    done(*report, "--out", tmp_path / "p.html")
    (tmp_path / "p.html").write_text("my thesis")
    assert "did not make it" in refused(*report, "--out", tmp_path / "p.html")
    assert "must end in .html" in refused(*report, "--out", made / "gen.h5")


def test_a_report_of_a_comparison_made_in_python_is_known_by_its_content(made, tmp_path):
    comparison = fe.load(made / "out" / "comparison.h5").marked(None)
    for name in ("a", "b"):
        replace(comparison, warnings=(name,)).save(tmp_path / f"{name}.h5")
    page = tmp_path / "p.html"
    done("report", tmp_path / "a.h5", "--out", page)
    done("report", tmp_path / "a.h5", "--out", page)
    assert "did not make it" in refused("report", tmp_path / "b.h5", "--out", page)


def test_kinds_keep_what_later_sets_are_counted_by(made, tmp_path):
    done("kinds", "--gen", f"a={made / 'gen.h5'}", "--gen", f"b={made / 'ref.h5'}", "--out", tmp_path / "k")
    stored = fe.load(tmp_path / "k" / "kinds.h5")
    later = stored.count({"c": made / "ref.h5", "d": made / "gen.h5"})
    assert list(stored.shares) == ["a", "b"] and later.divided.tree.digest == stored.divided.tree.digest
    assert "did not make it" in refused(
        "kinds", "--gen", f"a={made / 'ref.h5'}", "--gen", f"b={made / 'gen.h5'}", "--out", tmp_path / "k"
    )


def test_files_that_another_job_made_meanwhile_are_not_replaced(made, tmp_path):
    """Two comparisons into one folder at once: the first to end wins, and the other says so."""
    sets = {"gen": str(made / "ref.h5"), "ref": str(made / "gen.h5")}
    begun = output_folder("compare", "comparison", sets, tmp_path / "race", force=False)
    done(*compare(made, tmp_path / "race", "gen.h5", "--no-clusters"))
    before = {path.name: path.read_bytes() for path in (tmp_path / "race").iterdir()}
    few = {"features": 10, "modes": 1, "method": fe.Finc(clusters=False)}
    result = fe.compare(made / "ref.h5", made / "gen.h5", **few).marked(begun.job)
    with pytest.raises(fe.FincEvalError, match="did not make it, or made it with other settings: choose another --out"):
        begun.write(result, {}, {})
    assert {path.name: path.read_bytes() for path in (tmp_path / "race").iterdir()} == before


def test_a_command_whose_files_another_one_is_making_is_refused_before_its_work(made, tmp_path):
    with claims():
        output_folder("compare", "comparison", {"gen": "a", "ref": "b"}, tmp_path / "out", force=False)
        assert "comparison.html is being written by another process" in refused(*compare(made, tmp_path / "out"))
        done("kinds", "--gen", f"a={made / 'gen.h5'}", "--gen", f"b={made / 'ref.h5'}", "--out", tmp_path / "out")
    done(*compare(made, tmp_path / "out", "gen.h5", "--no-clusters"))
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


def test_a_command_that_fails_leaves_no_folder(made, tmp_path):
    np.savez(tmp_path / "short.npz", embeddings=np.zeros((3, 2)))
    refused("compare", "--gen", tmp_path / "short.npz", "--ref", made / "ref.h5", "--out", tmp_path / "new" / "out")
    assert not (tmp_path / "new").exists()


def test_the_members_of_a_kind_are_written_with_their_sets(made, tmp_path):
    found, out = fe.load(made / "out" / "comparison.h5"), tmp_path / "ids.txt"
    kind = found.kinds[0]
    done("report", made / "out" / "comparison.h5", "--members", kind.id, "--out", out)
    lines = [line.split("\t") for line in out.read_text().splitlines()]
    assert [name for label, name in lines if label == "gen"] == [*found.members(kind.id)["gen"]]
    assert len(lines) == sum(part.count for part in kind.shares.values())
    assert "did not make it" in refused("report", made / "out" / "comparison.h5", "--members", kind.id, "--out", out)
    assert "has no kind 'k'" in refused("report", made / "out" / "comparison.h5", "--members", "k")
