"""Smaller things that people try: they work, or one sentence names the way."""

import numpy as np
import pytest
from _tables import every_value
from PIL import Image

import finc_eval as fe
from finc_eval.cli.output import default_folder
from finc_eval.core.errors import FincEvalError
from finc_eval.leaderboards.entry import file_name

LEGAL = [
    "con",
    "CON",
    "nul",
    "aux.v1",
    "com1",
    "lpt9.tar",
    "prn",
    "a:b",
    "model.",
    "model ",
    "x?",
    "a|b",
    "a\\b",
    "..",
    "",
]


@pytest.mark.parametrize("name", [*LEGAL, "con.x.y", "<x>", 'a"b', "a*"])
def test_a_model_has_a_file_that_windows_can_have(name):
    file = file_name(name)
    stem = file.split(".")[0]
    assert stem and stem.lower() not in {
        "con",
        "prn",
        "aux",
        "nul",
        *(f"{one}{n}" for one in ("com", "lpt") for n in range(10)),
    }
    assert not set('<>:"/\\|?*') & set(file)
    assert file.endswith(".json")
    assert not file.removesuffix(".json").endswith((".", " "))


@pytest.mark.parametrize("name", ["console", "sd-1.5", "nullable", "com", "auxiliary"])
def test_a_plain_name_is_that_of_its_file(name):
    assert file_name(name) == f"{name}.json"


@pytest.mark.parametrize(
    "title", ["*.jpg", "a:b", 'a"b', "a|b", "x?", "<x>", "a/b", "a\\b", "..", "end.", "end ", "a\tb"]
)
def test_the_folder_of_a_result_can_be_on_windows(title):
    folder = default_folder([title, title])
    assert folder.parts[0] == "reports" and len(folder.parts) == 2
    assert not set('<>:"/\\|?*\t') & set(folder.name)
    assert not folder.name.endswith((".", " "))


def test_names_that_differ_have_files_that_differ():
    assert len({file_name(name).lower() for name in LEGAL}) == len(LEGAL)


def rows(seed, n=400):
    return np.random.default_rng(seed).normal(size=(n, 8)).astype("f4")


@pytest.mark.one_of_each
@pytest.mark.parametrize("seed", range(3))
def test_prd_does_not_depend_on_the_order_of_rows(seed):
    gen, ref = rows(1, 200), rows(2, 200)
    order = np.random.default_rng(seed).permutation(len(gen))
    before, after = (fe.metrics(*pair, ["prd"]) for pair in ((gen, ref), (gen[order], ref[order[::-1]])))
    for one, other in zip(before, after, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-9)


@pytest.mark.parametrize(("name", "value"), [("device", "cuda"), ("workers", 2), ("batch_size", 8)])
@pytest.mark.parametrize("verb", ["compare", "kinds"])
def test_an_option_of_a_run_is_named_where_it_belongs(verb, name, value):
    x, y = rows(1), rows(2)
    with pytest.raises(FincEvalError, match=rf"pass run=fe\.Run\({name}={value!r}\)"):
        fe.compare(x, y, **{name: value}) if verb == "compare" else fe.kinds({"a": x, "b": y}, **{name: value})


TAKES_SETS = {
    "compare": lambda **one: fe.compare(rows(1), rows(2), **one),
    "kinds": lambda **one: fe.kinds(rows(1), rows(2), **one),
    "metrics": lambda **one: fe.metrics(rows(1), rows(2), **one),
    "a metric": lambda **one: fe.metrics.kid(rows(1), rows(2), **one),
    "leaderboard": lambda **one: fe.leaderboard({"a": rows(1)}, rows(2), **one),
    "gate": lambda **one: fe.gate(rows(1), rows(2), rows(3), {"kinds": {"moved": 0.1}}, **one),
    "audit": lambda **one: fe.audit(rows(1), rows(2), rows(3), **one),
    "evaluate": lambda **one: fe.evaluate(rows(1), rows(2), **one),
    "sweep": lambda **one: fe.sweep(rows(1), rows(2), "rho", [1.0], **one),
    "compare_methods": lambda **one: fe.compare_methods(rows(1), rows(2), ["finc"], **one),
}
OF_EXTRACTION = {"n": 5, "range": (0, 1), "image_key": "image", "fps": 8, "color": "srgb", "include": ["*.png"]}


@pytest.mark.parametrize(("verb", "name"), every_value(TAKES_SETS, OF_EXTRACTION))
def test_an_option_of_extraction_is_named_where_it_belongs(verb, name):
    value = OF_EXTRACTION[name]
    with pytest.raises(FincEvalError) as caught:
        TAKES_SETS[verb](**{name: value})
    assert f"pass extractor=fe.Extraction({name}={value!r}), or embed first by fe.extract(…, {name}={value!r})" in str(
        caught.value
    )
    assert fe.Extraction(**{name: value}) is not None


@pytest.mark.parametrize("verb", TAKES_SETS)
def test_an_option_that_nobody_has_is_unknown(verb):
    with pytest.raises(FincEvalError, match=r"(unknown option|has no parameter) 'lable'"):
        TAKES_SETS[verb](lable=1)


def images(seed, n=40):
    return [Image.fromarray(one) for one in np.random.default_rng(seed).integers(0, 256, (n, 8, 8, 3)).astype("u1")]


LABELS = ["sea", "land"] * 20


def written(items, folder):
    for number, one in enumerate(items):
        one.save(folder / f"{number:02d}.png")
    return sorted(folder.glob("*.png"))


FORMS_OF_PAIRS = {
    "pairs": lambda items, folder: list(zip(items, LABELS, strict=True)),
    "a tuple of pairs": lambda items, folder: tuple(zip(items, LABELS, strict=True)),
    "lists of two": lambda items, folder: [[one, label] for one, label in zip(items, LABELS, strict=True)],
    "arrays": lambda items, folder: [(np.asarray(one), label) for one, label in zip(items, LABELS, strict=True)],
    "numbers of classes": lambda items, folder: [
        (one, np.int64(label == "sea")) for one, label in zip(items, LABELS, strict=True)
    ],
    "triples": lambda items, folder: [(one, label, 7) for one, label in zip(items, LABELS, strict=True)],
    "dictionaries": lambda items, folder: [
        {"image": one, "label": label} for one, label in zip(items, LABELS, strict=True)
    ],
    "paths": lambda items, folder: list(zip(written(items, folder), LABELS, strict=True)),
    "names of files": lambda items, folder: list(zip(map(str, written(items, folder)), LABELS, strict=True)),
    "dictionaries of names": lambda items, folder: [
        {"image": str(path), "label": label} for path, label in zip(written(items, folder), LABELS, strict=True)
    ],
    "files in memory": lambda items, folder: [
        (path.read_bytes(), label) for path, label in zip(written(items, folder), LABELS, strict=True)
    ],
}
BY_LABEL = {
    "compare": lambda gen, ref: fe.compare(gen, ref, extractor="pixels", features=20, modes=2, by="label").by.kinds,
    "kinds": lambda gen, ref: fe.kinds(gen, ref, extractor="pixels", by="label").by.kinds,
    "kinds by name": lambda gen, ref: fe.kinds({"a": gen, "b": ref}, extractor="pixels", by="label").by.kinds,
    "leaderboard": lambda gen, ref: (
        fe.leaderboard({"a": gen}, ref, metrics=["kid"], extractor="pixels", by="label").by.kinds
    ),
    "training runs": lambda gen, ref: (
        fe.leaderboard({"a": [gen, gen[::-1][2:]]}, ref, metrics=["kid"], extractor="pixels", by="label").by.kinds
    ),
    "metrics": lambda gen, ref: (
        {score.of for score in fe.metrics(gen, ref, "kid", extractor="pixels", by="label")} - {None}
    ),
    "gate": lambda gen, ref: (
        fe.gate(gen, ref, gen, {"kinds": {"new": 0.9, "column": "label"}}, extractor="pixels").sets.keys() - {"ref"}
    ),
}


@pytest.mark.one_of_each("verb")
@pytest.mark.parametrize(("form", "verb"), every_value(FORMS_OF_PAIRS, BY_LABEL))
def test_images_with_labels_are_a_set_with_labels_in_every_verb(form, verb, tmp_path):
    sets = []
    for seed in (1, 2):
        (tmp_path / str(seed)).mkdir()
        sets.append(FORMS_OF_PAIRS[form](images(seed), tmp_path / str(seed)))
    assert len(BY_LABEL[verb](*sets)) == 2


@pytest.mark.one_of_each
@pytest.mark.parametrize("form", ["arrays", "gray", "images", "names", "paths"])
@pytest.mark.parametrize("verb", ["kinds", "gate", "leaderboard"])
def test_a_list_of_images_is_one_set_and_not_many(form, verb, tmp_path):
    sets = []
    for seed in (1, 2):
        (tmp_path / str(seed)).mkdir()
        made = images(seed)
        arrays = list(map(np.asarray, made))
        files = written(made, tmp_path / str(seed))
        forms = {
            "arrays": arrays,
            "gray": [one[..., 0] for one in arrays],
            "images": made,
            "names": list(map(str, files)),
        }
        sets.append(forms.get(form, files))
    gen, ref = sets
    if verb == "kinds":
        found = fe.kinds(gen, ref, extractor="pixels").sets
    elif verb == "gate":
        found = fe.gate(gen, ref, images(3), {"kinds": {"moved": 0.5}}, extractor="pixels").sets
    else:
        found = fe.leaderboard({"gen": gen}, ref, metrics=["kid"], extractor="pixels").sets
    assert [one.n for one in found.values()][:2] == [40, 40] and "baseline-1" not in found


def test_labels_beside_images_are_told_to_be_given_as_pairs():
    with pytest.raises(FincEvalError, match=r"pass list\(zip\(images, labels\)\)"):
        fe.compare(images(1), images(2), labels=(LABELS, LABELS), extractor="pixels")


@pytest.mark.one_of_each
@pytest.mark.parametrize("n", [100, 300])
def test_a_clean_result_can_be_drawn(n):
    pytest.importorskip("matplotlib")
    found = fe.compare(rows(1, n), rows(2, n), features=20, modes=2)
    assert len(found.figure().axes) >= 1


def test_a_set_against_itself_is_told_to_be_one():
    x = rows(1, 60)
    assert any("all 60 samples of gen are also in ref" in one for one in fe.compare(x, x, features=20).warnings)
