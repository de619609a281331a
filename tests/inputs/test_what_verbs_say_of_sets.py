"""Every verb says what is to be said of its sets: unlike files, columns that a set lacks, names without folders."""

import numpy as np
import pytest
from _tables import every_value
from PIL import Image, ImageCms

import finc_eval as fe
from finc_eval.core.errors import FincEvalError

N = 24
PIXELS = np.random.default_rng(0).integers(0, 256, (2, N, 12, 12, 3)).astype("u1")
ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()


def saved(folder, side, *, suffix="png", size=12, gray=False, classes=(), **options):
    for number, pixels in enumerate(PIXELS[side]):
        place = folder / classes[number % len(classes)] if classes else folder
        place.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(pixels).resize((size, size))
        (image.convert("L") if gray else image).save(place / f"{number:02d}.{suffix}", **options)
    return folder


def metrics(gen, ref, by=None):
    return fe.metrics(gen, ref, "kid", by=by, extractor="pixels")


POLICY = {"kinds": {"moved": 0.5}}
FEW = {"features": 20, "modes": 1, "method": fe.Finc(clusters=False)}
WARNINGS = {
    "metrics": lambda gen, ref: metrics(gen, ref)["kid_mean"].notes,
    "kinds": lambda gen, ref: fe.kinds(gen, ref, extractor="pixels").warnings,
    "compare": lambda gen, ref: fe.compare(gen, ref, extractor="pixels", **FEW).warnings,
    "leaderboard": lambda gen, ref: fe.leaderboard({"gen": gen}, ref, metrics=["kid"], extractor="pixels").warnings,
    "gate": lambda gen, ref: fe.gate(gen, PIXELS[0][:, ::-1], ref, POLICY, extractor="pixels").warnings,
}
UNLIKE = {
    "JPEG": ({"suffix": "jpg"}, "of gen (JPEG) and 0 % of ref (PNG) are compressed with loss"),
    "WebP": ({"suffix": "webp", "quality": 40}, "of gen (WEBP) and 0 % of ref (PNG) are compressed with loss"),
    "size": ({"size": 24}, "samples are 24 pixels wide and 24 high in gen, 12 and 12 in ref"),
    "gray": ({"gray": True}, "100 % of gen and 0 % of ref are gray"),
    "profile": ({"icc_profile": ICC}, "of gen and 0 % of ref have colors that are not sRGB"),
}


@pytest.mark.parametrize(("verb", "trait"), every_value(WARNINGS, UNLIKE))
def test_every_verb_warns_of_files_that_are_encoded_unlike(verb, trait, tmp_path):
    options, said = UNLIKE[trait]
    gen, ref = saved(tmp_path / "gen", 0, **options), saved(tmp_path / "ref", 1)
    assert sum(said in one for one in WARNINGS[verb](gen, ref)) == 1


@pytest.mark.one_of_each
@pytest.mark.parametrize("verb", WARNINGS)
def test_no_verb_warns_of_files_that_are_encoded_alike(verb, tmp_path):
    said = " ".join(WARNINGS[verb](saved(tmp_path / "gen", 0), saved(tmp_path / "ref", 1)))
    assert not any(word in said for word in ("compressed", "pixels wide", "gray", "sRGB"))


def test_sets_without_a_reference_are_held_against_the_first(tmp_path):
    sets = {name: saved(tmp_path / name, 0, suffix=form) for name, form in (("a", "png"), ("b", "jpg"), ("c", "jpg"))}
    found = fe.kinds(sets, extractor="pixels").warnings
    assert [one[:32] for one in found if "loss" in one] == [
        "100 % of b (JPEG) and 0 % of a (",
        "100 % of c (JPEG) and 0 % of a (",
    ]


BY_COLUMN = {
    "kinds": lambda gen, ref, by: fe.kinds(gen, ref, extractor="pixels", by=by),
    "compare": lambda gen, ref, by: fe.compare(gen, ref, extractor="pixels", features=20, by=by),
    "leaderboard": lambda gen, ref, by: fe.leaderboard({"gen": gen}, ref, extractor="pixels", by=by),
    "metrics": metrics,
    "gate": lambda gen, ref, by: fe.gate(gen, gen, ref, {"kinds": {"moved": 0.5, "column": by}}, extractor="pixels"),
    "slice": lambda gen, ref, by: fe.gate(
        gen, gen, ref, {"slices": {"a": {"column": by, "only": ["a"], **POLICY}}}, extractor="pixels"
    ),
}


@pytest.mark.parametrize("verb", BY_COLUMN)
def test_a_column_that_a_set_lacks_is_named_with_the_set_before_any_work(verb, tmp_path):
    gen, ref = (saved(tmp_path / name, side, classes=("a", "b")) for side, name in enumerate(("gen", "ref")))
    with pytest.raises(FincEvalError, match=r"^(gen|baseline) has no column 'lable'.*: it has label$"):
        BY_COLUMN[verb](gen, ref, "lable")
    assert not list((tmp_path / "cache").rglob("*.h5"))


@pytest.mark.one_of_each
@pytest.mark.parametrize(("given", "kept"), [("class", "label"), ("Class", "label"), ("caption", "prompt")])
def test_a_column_that_is_kept_under_another_name_is_told_under_it(given, kept, tmp_path):
    gen, ref = saved(tmp_path / "gen", 0), saved(tmp_path / "ref", 1)
    for one in (gen, ref):
        rows = [f"{number:02d}.png,{'ab'[number % 2]}" for number in range(N)]
        (one / "metadata.csv").write_text("\n".join([f"file_name,{given}", *rows]))
    with pytest.raises(FincEvalError, match=f"it has {kept}; the column {given} of a table is kept as {kept}"):
        fe.kinds(gen, ref, extractor="pixels", by=given)
    assert len(fe.kinds(gen, ref, extractor="pixels", by=kept).by.kinds) == 2


@pytest.mark.one_of_each
@pytest.mark.parametrize("verb", BY_COLUMN)
def test_a_column_that_only_the_cache_of_a_set_has_is_taken(verb, tmp_path):
    gen, ref = saved(tmp_path / "gen", 0), saved(tmp_path / "ref", 1)
    for one in (gen, ref):
        table = {"id": [f"{number:02d}.png" for number in range(N)], "ward": ["a", "b"] * (N // 2)}
        fe.extract(one, "pixels", metadata=table)
    assert BY_COLUMN[verb](gen, ref, "ward") is not None


def results(verb, gen, ref):
    match verb:
        case "compare":
            return fe.compare(gen, ref, features=20)
        case "kinds":
            return fe.kinds(gen, ref)
        case "leaderboard":
            return fe.leaderboard({"gen": gen}, ref, metrics=["fd", "kid", "prdc"])
        case "gate":
            return fe.gate(gen, gen, ref, {**POLICY, "metrics": {"kid": {"worse": 0.1}}})
        case _:
            return fe.metrics(gen, ref, ["fd", "kid", "fid", "clip_score", "cmmd"])


def embedded(form, folder):
    sets = [fe.extract(PIXELS[side], "pixels") for side in (0, 1)]
    paths = [folder / f"{name}.{form}" for name in ("one", "other")]
    for path, one in zip(paths, sets, strict=True):
        if form == "npy":
            np.save(path, np.asarray(one))
        elif form == "npz":
            np.savez(path, embeddings=np.asarray(one))
        elif form == "h5":
            fe.extract(saved(folder / path.stem, 0 if path.stem == "one" else 1), "pixels", out=path)
        else:
            rows = np.asarray(one)
            np.savez(path.with_suffix(".npz"), mu=rows.mean(0), sigma=np.cov(rows.T))
    return paths


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    ("verb", "form"), every_value(["metrics", "compare", "kinds", "leaderboard", "gate"], ["h5", "npy", "npz"])
)
def test_pages_name_sets_without_their_folders(verb, form, tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    (tmp_path / "home of jane").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    found = results(verb, *embedded(form, tmp_path / "home of jane"))
    shown = [found.to_html("page.html").read_text(), found.to_markdown()]
    if verb == "metrics":
        shown.append(found.to_json())
    assert not any("home of jane" in one for one in shown)


@pytest.mark.parametrize(("names", "said"), [(("a/set", "b/set"), ("gen", "ref")), (("a/x", "b/y"), ("x", "y"))])
def test_sets_of_one_name_are_called_by_their_labels(names, said, tmp_path):
    places = [tmp_path / f"{name}.npy" for name in names]
    for place, seed in zip(places, (0, 1), strict=True):
        place.parent.mkdir(exist_ok=True)
        np.save(place, np.random.default_rng(seed).normal(size=(30, 60)).astype("f4"))
    notes = " ".join(fe.metrics(*places, "fd")["fd"].notes)
    assert all(f"{one} has 30 samples in 60 dimensions" in notes for one in said)


def test_statistics_and_samples_that_are_gone_are_named_without_their_folders(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    (tmp_path / "home of jane").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    rows = np.random.default_rng(0).normal(size=(300, 4)).astype("f4")
    np.save(tmp_path / "home of jane" / "rows.npy", rows)
    np.savez(tmp_path / "home of jane" / "statistics.npz", mu=rows.mean(0), sigma=np.cov(rows.T))
    found = fe.metrics(*(tmp_path / "home of jane" / name for name in ("rows.npy", "statistics.npz")), "fd")
    assert found.ref == "statistics.npz"
    assert "home of jane" not in found.to_json() + found.to_html("page.html").read_text()

    comparison = fe.compare(saved(tmp_path / "home of jane" / "gen", 0), PIXELS[1], extractor="pixels", **FEW)
    (tmp_path / "home of jane" / "gen").rename(tmp_path / "gone")
    page = comparison.to_html("page.html").read_text()
    assert "gen" in page and "home of jane" not in page
