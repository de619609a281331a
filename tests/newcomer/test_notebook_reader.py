"""A reader of notebooks looks, from arrays alone: labels and groups beside arrays, tables, figures, signatures."""

import inspect

import numpy as np
import pytest

import finc_eval as fe

RNG = np.random.default_rng(0)
CENTERS = 4 * RNG.standard_normal((6, 16))


def drawn(shares, n, per_clip=1):
    labels = np.repeat(RNG.choice(6, n // per_clip, p=shares), per_clip)
    return CENTERS[labels] + RNG.standard_normal((n, 16)), np.array(["cat", "dog", "fox", "owl", "bee", "ant"])[labels]


EVEN = np.full(6, 1 / 6)
PLANTED = EVEN + np.array([0.1, -0.1, 0, 0, 0, 0])


@pytest.fixture(scope="module")
def arrays():
    (gen, of_gen), (ref, of_ref) = drawn(PLANTED, 900), drawn(EVEN, 1000)
    return gen, ref, of_gen, of_ref


def test_from_arrays_to_a_named_table_and_a_figure(arrays, tmp_path):
    gen, ref, of_gen, of_ref = arrays
    found = fe.kinds(gen, ref, labels=(of_gen, of_ref))
    assert {kind.name.split()[1] for kind in found.significant()} == {"cat", "dog"}  # "mostly cat (99 %)"
    frame = found.by.to_frame().set_index("name")
    assert frame.loc["cat", "shares.gen.share"] == pytest.approx((of_gen == "cat").mean())
    assert set(frame.index[frame["significant"]]) == {"cat", "dog"}
    assert "cat" in found.by.kinds[0].title + found.by.kinds[1].title
    figure = found.figure()
    assert len(figure.axes[0].get_yticklabels()) == len(found.significant())
    assert "mostly cat" in found.to_latex(tmp_path / "kinds.tex")


def test_compare_and_metrics_take_the_same_words(arrays):
    gen, ref, of_gen, of_ref = arrays
    labels = {"gen": of_gen, "ref": of_ref}
    compared = fe.compare(gen, ref, labels=labels, method="clusters")
    assert compared.by == fe.kinds(gen, ref, labels=labels).by
    scores = fe.metrics(gen, ref, "vendi", labels=(of_gen, of_ref))
    assert scores["vendi", "cat"].value < scores["vendi"].value


def test_groups_beside_arrays_are_the_units_of_the_tests():
    sets, labels, groups = {}, {}, {}
    for name in ("gen", "ref"):
        sets[name], labels[name] = drawn(EVEN, 600, per_clip=6)
        groups[name] = np.arange(600) // 6
    single = fe.kinds(sets, labels=labels).by.kinds
    grouped = fe.kinds(sets, labels=labels, groups=groups)
    width = {one.name: one.interval[1] - one.interval[0] for one in single}
    assert all(one.interval[1] - one.interval[0] > 1.5 * width[one.name] for one in grouped.by.kinds)
    assert grouped.settings.groups == "group"


def test_columns_of_a_set_stay_beside_new_ones(arrays):
    gen, ref, of_gen, of_ref = arrays
    one = fe.EmbeddingSet(gen, metadata={"color": ["red"] * len(gen)})
    found = fe.kinds(one, ref, labels=(of_gen, of_ref), by=None)
    assert found.by.column == "label"
    with pytest.raises(fe.UsageError, match="ref has no column 'color'"):
        fe.kinds(one, ref, labels=(of_gen, of_ref), by="color")


WRONG = {
    "a short array": ((["cat"] * 3, ["cat"] * 1000), "the column 'label' of gen has 3 values for 900 samples"),
    "one array": (["cat"] * 600, "labels must be one array for each of gen and ref, .* got 600 arrays"),
    "a number": (7, "labels must be one array for each of gen and ref, .* got int"),
    "another name": ({"generated": ["cat"]}, "labels name a set 'generated': the sets are gen and ref"),
    "a word": (("cat", "dog"), "the column 'label' must be a list of values, one a sample, got 'cat'"),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("verb", ["compare", "kinds", "metrics"])
def test_what_does_not_fit_is_one_sentence(arrays, verb, what):
    labels, sentence = WRONG[what]
    with pytest.raises(fe.UsageError, match=sentence) as caught:
        getattr(fe, verb)(*arrays[:2], labels=labels)
    assert "\n" not in str(caught.value)


def test_labels_beside_a_file_are_refused(tmp_path, arrays):
    np.save(tmp_path / "gen.npy", arrays[0])
    with pytest.raises(fe.UsageError, match="labels and groups stand beside arrays, and gen is of the type str: name"):
        fe.kinds(str(tmp_path / "gen.npy"), arrays[1], labels=(arrays[2], arrays[3]))


VERBS = ("compare", "kinds", "metrics", "evaluate", "gate", "leaderboard", "audit", "sweep", "compare_methods")
CLASSES = ("Settings", "KindSettings", "LeaderboardSettings", "AuditSettings", "Extraction", "Policy")


@pytest.mark.parametrize("name", [*VERBS, *CLASSES])
def test_signatures_are_read_at_a_glance(name):
    text = str(inspect.signature(getattr(fe, name)))
    assert len(text) < 800 and "about(" not in text and "Annotated" not in text and "Unpack" not in text, text


def test_a_verb_shows_its_options_with_their_defaults():
    shown = inspect.signature(fe.compare).parameters
    assert shown["rho"].default == 1.0 and shown["features"].default == fe.Settings().features
    assert {*inspect.signature(fe.Settings).parameters} < {*shown}


def test_members_are_asked_by_a_kind_or_by_its_id(arrays):
    gen, ref, *_ = arrays
    found = fe.compare(gen, ref, method="clusters")
    kind = found.significant()[0]
    assert found.members(kind) == found.members(kind.id) and any(found.members(kind).values())
    with pytest.raises(fe.UsageError, match="must be a kind of the result, or its id, got int"):
        found.members(0)


@pytest.mark.parametrize(
    ("name", "value", "answer"),
    [("random_state", 1, 'did you mean "seed"'), ("n_jobs", 4, r"pass run=fe\.Run\(workers=4\)")],
)
def test_an_option_of_another_library_is_answered_with_ours(arrays, name, value, answer):
    for call in (fe.compare, fe.kinds):
        with pytest.raises(fe.UsageError, match=answer):
            call(*arrays[:2], **{name: value})


def test_a_set_is_shown_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    images = RNG.integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
    np.savez(tmp_path / "model_a.npz", arr_0=images)
    assert repr(fe.extract(tmp_path / "model_a.npz", "pixels")).startswith("EmbeddingCache('model_a.npz', n=20, ")
    assert repr(fe.extract(images, "pixels")).startswith("EmbeddingCache(n=20, ")


def test_a_notebook_shows_pictures_of_each_finding():
    pixels = RNG.integers(0, 200, (80, 6, 6, 3))
    gray = np.repeat(pixels[..., :1], 3, axis=-1)
    colored = np.concatenate([pixels[:30], np.repeat(RNG.integers(0, 200, (50, 6, 6, 1)), 3, axis=-1)])
    gen, ref = (
        fe.EmbeddingSet(
            rows.reshape(80, -1) / np.float32(255), images=np.kron(rows, np.ones((1, 4, 4, 1))).astype(np.uint8)
        )
        for rows in (colored, gray)
    )
    found = fe.compare(gen, ref, features=50)
    assert any("color" in finding.text for finding in found.findings)
    view = found._repr_html_()
    row = view[view.index("in color", view.index("What differs")) :].partition("</tr>")[0]
    assert "<img" in row
