"""The needs of a question are checked before the first sample is embedded, by every verb and by every function."""

import shutil

import numpy as np
import pytest
from _verbs import run
from PIL import Image

import finc_eval as fe
from finc_eval.embeddings.job import Job


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two sets of 40 pictures with the same names, one of 40 with others, a set of 10, and files of other kinds."""
    folder = tmp_path_factory.mktemp("work")
    rng = np.random.default_rng(0)
    for name, first, count in (("gen", 0, 40), ("ref", 0, 40), ("other", 500, 40), ("few", 0, 10)):
        (folder / name).mkdir()
        for number in range(first, first + count):
            pixels = rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"p{number:03}.png")
    shutil.copytree(folder / "gen", folder / "labeled")
    rows = "".join(f"p{number:03}.png,{number % 2},a cat {number}\n" for number in range(40))
    (folder / "labeled" / "metadata.csv").write_text(f"file_name,label,prompt\n{rows}")
    (folder / "few" / "notes.txt").write_text("no sample")
    (folder / "file").write_text("a file, where a folder would be")
    np.save(folder / "vectors.npy", np.eye(4, dtype=np.float32))
    policies = {
        "column": 'kinds.lose = 0.5\nkinds.column = "scene"',
        "groups": 'kinds.lose = 0.5\ngroups = "clip"',
        "pairs": 'kinds.lose = 0.5\npairs = "prompt"',
        "ids": "by_id.broken = 0",
        "slice": 'slices.night.column = "hour"\nslices.night.only = ["2"]\nslices.night.kinds.lose = 0.5',
        "space": 'kinds.lose = 0.5\nextractor = "efficientnet-lite0"',
        "metric": "metrics.fdd.worse = 0.1",
        "plain": "kinds.lose = 0.5",
    }
    for name, text in policies.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.fixture(autouse=True)
def nothing_is_embedded(place, tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("a sample was embedded")

    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FINC_EVAL_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.setattr(Job, "_fill", refuse)
    monkeypatch.chdir(place)


TWO = "--gen gen --ref ref"
PROMPTS, LABELS, IDS = "prompts go into a file metadata.csv", "labels are the names of folders", "--pairs id"
FEW, NO_FOLDER, LEFT_OUT = "few has 10 samples", "cannot be written", "not samples: 1 x .txt"
OF_COMPARISONS = {
    "--pairs prompt": (PROMPTS, "--prompts FILE", IDS),
    "--pairs scene": ("metadata.csv", IDS),
    "--by label": (LABELS,),
    "--groups clip": ("has the column 'clip' that groups asks for", "metadata.csv"),
    "--text words": (PROMPTS,),
    "--text nothing.npy": (PROMPTS,),
}
COMPARISONS = ("compare", "compare methods", "compare sweep --parameter rho", "compare sweep --parameter sigma")
CASES = {
    **{
        f"{verb} {TWO} {option}": said
        for verb in COMPARISONS
        for option, said in OF_COMPARISONS.items()
        if not ("rho" in verb and "--pairs" in option)  # a sweep of ρ takes no pairs
    },
    **{f"evaluate {TWO} {option}": said for option, said in OF_COMPARISONS.items()},
    **{
        f"{verb} {option}": said
        for verb in ("kinds a=gen b=ref", "leaderboard a=gen --ref ref", "leaderboard add board a=gen --ref ref")
        for option, said in OF_COMPARISONS.items()
        if "--text" not in option and not (verb.startswith("leaderboard add") and "--pairs" in option)
    },
    "compare --gen gen --ref other --pairs id": ("gen and ref have 0 values of 'id' in common",),
    "kinds a=gen b=other --pairs id": ("a and b have 0 values of 'id' in common",),
    "leaderboard a=gen --ref other --pairs id": ("have 0 values of 'id' in common",),
    f"compare {TWO} --again other": ('pass pairs="id"',),
    f"compare {TWO} --again other --pairs id": ("has 0 ids in common with ref",),
    "compare --gen labeled --ref labeled --text vectors.npy": ("has no embedding for",),
    "compare --gen labeled --ref labeled --text clip-vitb32": ("doctor weights fetch",),
    "compare --gen labeled --ref labeled --text foo": ("text must be words",),
    f"compare {TWO} --extractor pixels --extractor dinov2-vits14": ("doctor weights fetch",),
    "leaderboard a=gen --ref ref --extractor pixels --extractor dinov2-vits14": ("doctor weights fetch",),
    f"compare {TWO} --kinds absent.h5": ("absent.h5 does not exist",),
    **{
        f"{verb} --gen few --ref ref": ("gen has 10 samples", "not samples: 1 x .txt")
        for verb in (*COMPARISONS, "evaluate")
    },
    "compare --gen gen --ref few": ("ref has 10 samples",),
    "compare --gen gen --ref ref --n 10": ("gen has 10 samples",),
    "kinds few=few b=ref": (FEW,),
    "leaderboard few=few --ref ref": (FEW,),
    "leaderboard add board few=few --ref ref": (FEW,),
    "leaderboard a=gen --ref ref --scores aesthetic": ("has no column 'aesthetic'",),
    "leaderboard a=gen --ref ref --scores a=absent.csv": ("absent.csv does not exist",),
    "leaderboard a=gen --ref ref --votes absent.csv": ("absent.csv does not exist",),
    "leaderboard a=gen --ref ref --metrics fdd": ('unknown metric "fdd"',),
    "leaderboard a=gen --ref ref --rank-by fdd": ("no number is called 'fdd'",),
    f"metrics {TWO} --by label": (LABELS,),
    f"metrics {TWO} --metrics fdd": ('unknown metric "fdd"',),
    **{
        f"metrics {TWO} --metrics {name}": (f"{name} needs prompts in all sets", "metadata.csv")
        for name in ("clip_score", "scendi", "conditional_vendi", "conditional_rke")
    },
    f"metrics {TWO} --metrics clip_score,scendi": ("clip_score needs prompts", "scendi needs prompts"),
    "metrics --gen gen --ref labeled --metrics scendi": ("scendi needs prompts",),
    f"metrics {TWO} --metrics fld": ("fld needs a third set",),
    f"metrics {TWO} --metrics fid": ("fid is defined on inception-fid",),
    f"metrics {TWO} --extractor inception-fid --metrics fid": ("doctor weights fetch",),
    f"metrics {TWO} --save-statistics file/s.npz": (NO_FOLDER,),
    "audit --gen gen --train ref --holdout other": ("gen has 40 samples: an audit needs at least 100",),
    "extract gen --metadata vectors.npy": ("metadata are a .csv",),
    "extract sketch gen --extractor pixels --out s.h5 --groups clip": ("has no column 'clip'",),
    "extract sketch gen --extractor pixels --out file/s.h5": (NO_FOLDER,),
    "extract gen --out file/s.h5": (NO_FOLDER,),
    "score gen --comparison absent.h5 --out s.csv": ("absent.h5 does not exist",),
    "kahm fit gen --out k.h5": ("gen has no labels",),
    "kahm fit labeled --label class_of --out k.h5": ("has no column 'class_of'",),
    "kahm fit labeled --out file/k.h5": (NO_FOLDER,),
    "kahm fabricate gen --epsilon 1 --out k.npz": ("gen has no labels",),
    "private sketch release --data gen --ledger l --budget 9 --epsilon 1 --length-scale 3 --radius 3 --out s.h5 "
    "--classes a,b": ("no labels",),
    **{
        f"{verb} --out file/r": (NO_FOLDER,)
        for verb in (f"compare {TWO}", "kinds a=gen b=ref", f"evaluate {TWO}", f"metrics {TWO}")
    },
    **{
        f"gate --gen gen --baseline other --ref ref --policy {policy}.toml": said
        for policy, said in {
            "column": ("has no column 'scene'",),
            "groups": ("has no column 'clip'",),
            "pairs": (PROMPTS,),
            "ids": ("have no partner in baseline",),
            "slice": ("has no column 'hour'",),
            "space": ("the policy is for embeddings by efficientnet-lite0",),
            "metric": ('unknown metric "fdd"',),
        }.items()
    },
    "gate --gen few --baseline ref --ref other --policy plain.toml": ("gen has 10 samples",),
    "gate --gen gen --baseline ref --ref other --policy absent.toml": ("absent.toml does not exist",),
    "gate --gen gen --baseline ref --ref other --policy plain.toml --out file/g": (NO_FOLDER,),
    "gate --gen gen --baseline ref --ref other --policy plain.toml --comment file/c.md": (NO_FOLDER,),
    "gate --init --baseline ref --ref other --policy file/p.toml": (NO_FOLDER,),
    "gate --init --baseline ref --ref other --policy new.toml --groups clip": ("has no column 'clip'",),
    "gate --init --baseline few --ref other --policy new.toml": ("baseline has 10 samples",),
}


@pytest.mark.one_of_each(by=lambda command: (command.split()[0], NO_FOLDER in CASES[command]))
@pytest.mark.parametrize("command", CASES, ids=str)
def test_a_verb_says_what_is_missing_before_it_embeds(command):
    words = command.split()
    needs = words[0] != "extract" and words[0] != "compare"  # for those, `run` names it
    extractor = ["--extractor", "pixels"] if needs and "--extractor" not in words else []
    found = run(*words, *extractor)
    assert found.exit_code == 3, found.output
    (sentence,) = [line for line in found.stderr.splitlines() if line.startswith("finc-eval: ")]
    assert [one for one in CASES[command] if one not in sentence] == [], sentence
    assert "Traceback" not in found.output


def pair():
    return {"gen": "gen", "ref": "ref"}


CALLS = {
    "compare": lambda: fe.compare("gen", "ref", pairs="prompt", extractor="pixels"),
    "compare by": lambda: fe.compare("gen", "ref", by="label", extractor="pixels"),
    "compare few": lambda: fe.compare("few", "ref", extractor="pixels"),
    "compare again": lambda: fe.compare("gen", "ref", again=["other"], pairs="id", extractor="pixels"),
    "spaces": lambda: fe.compare("gen", "ref", extractor=["pixels", "dinov2-vits14"]),
    "methods": lambda: fe.compare_methods("gen", "ref", ["finc"], by="label", extractor="pixels"),
    "sweep": lambda: fe.sweep("gen", "ref", "rho", text="words", extractor="pixels"),
    "kinds": lambda: fe.kinds(pair(), pairs="prompt", extractor="pixels"),
    "kinds by": lambda: fe.kinds(pair(), by="label", extractor="pixels"),
    "metrics": lambda: fe.metrics("gen", "ref", by="label", extractor="pixels"),
    "statistics": lambda: fe.metrics("gen", "ref", save_statistics="file/s.npz", extractor="pixels"),
    "evaluate": lambda: fe.evaluate("gen", "ref", pairs="prompt", extractor="pixels"),
    "audit": lambda: fe.audit("gen", "ref", "other", extractor="pixels"),
    "board": lambda: fe.leaderboard({"a": "gen"}, "ref", groups="clip", extractor="pixels"),
    "board by": lambda: fe.leaderboard({"a": "gen"}, "ref", by="label", extractor="pixels"),
    "scores": lambda: fe.leaderboard({"a": "gen"}, "ref", scores=["aesthetic"], extractor="pixels"),
    "gate": lambda: fe.gate("gen", "ref", "other", {"kinds": {"lose": 0.5}, "groups": "clip"}, extractor="pixels"),
    "gate pairs": lambda: fe.gate("gen", "ref", "few", {"kinds": {"lose": 0.5}, "pairs": "prompt"}, extractor="pixels"),
    "sketch": lambda: fe.Sketch.reference("gen", groups="clip", extractor="pixels"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_says_what_is_missing_before_it_embeds(name):
    with pytest.raises(fe.FincEvalError):
        CALLS[name]()


def test_these_sets_are_embedded_where_nothing_is_missing():
    with pytest.raises(AssertionError, match="a sample was embedded"):
        fe.compare("gen", "ref", extractor="pixels")
    assert isinstance(run("compare", *TWO.split(), "--out", "r").exception, SystemExit)
