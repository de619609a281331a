"""The fit of images to their prompts: per model, word and prompt, by the text tower of a card."""

import numpy as np
import pytest
import torch
from _clip import small_clip
from PIL import Image
from scipy import stats

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.estimates.estimate import Estimate
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.network import TextTower
from finc_eval.measures.prompted import clip_score
from finc_eval.partitions.blocks import pair
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.prompts.images import Permuted
from finc_eval.prompts.page import prompt_tables
from finc_eval.prompts.table import prompt_differences

COLORS, THINGS = ("red", "green", "blue", "grey"), ("cat", "dog", "car", "house")
PROMPTS = [f"a {color} {thing} {place}" for color in COLORS for thing in THINGS for place in range(3)]


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    pytest.importorskip("open_clip")
    return small_clip(tmp_path_factory.mktemp("clip"))


def rows_of(each, seed, vectors, wrong=()):
    """Images near the vectors of their prompts, or near the opposite where the prompt has a wrong word."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(len(PROMPTS)), each)
    sign = np.array([-1.0 if set(PROMPTS[row].split()) & set(wrong) else 1.0 for row in of])
    rows = sign[:, None] * vectors[of] + 0.8 * rng.normal(size=(len(of), vectors.shape[1])) / np.sqrt(16)
    return fe.EmbeddingSet(rows.astype(np.float32), metadata={"prompt": [PROMPTS[row] for row in of]})


@pytest.fixture(scope="module")
def vectors(clip):
    found = TextTower(load_card(clip[1]), "cpu")(PROMPTS).numpy().astype(float)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def differences(gen, ref, text, seed=0):
    pairing, _ = pair({"gen": gen, "ref": ref}, "prompt")
    return prompt_differences(pairing, KindTree.of_sets(pairing.fitted_to, seed, Run()), seed, Run(), text)


def test_samples_of_a_card_are_scored_as_both_towers_say(clip, tmp_path):
    model, card = clip
    rng, names = np.random.default_rng(0), [f"a {one} thing" for one in COLORS]
    images = rng.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    for number, one in enumerate(images):
        Image.fromarray(one).save(tmp_path / f"{number:02d}.png")
        (tmp_path / f"{number:02d}.txt").write_text(names[number % 4])
    cache = fe.extract(tmp_path, card, out=tmp_path / "c.h5")
    with torch.no_grad():
        x = model.encode_image(torch.from_numpy(images).permute(0, 3, 1, 2).float() / 127.5 - 1)
        t = model.encode_text(TextTower(load_card(card), "cpu").tokens(names))
    expected = 2.5 * torch.nn.functional.cosine_similarity(x, t[[row % 4 for row in range(12)]]).clip(min=0)
    found = clip_score(cache, str(card))
    assert found.value == pytest.approx(float(expected.mean()), abs=1e-5)
    assert found.by_prompt[names[1]] == pytest.approx(float(expected[1::4].mean()), abs=1e-5)
    score = fe.metrics.clip_score(cache, cache, text=str(card))["clip_score"]
    assert (score.value, score.interval) == (found.value, found.interval)
    with pytest.raises(fe.UsageError, match="made with a card of your own, small-clip"):
        clip_score(cache)
    with pytest.raises(
        fe.IncompatibleError, match="was embedded with small-clip, and its prompts would be with clip-v"
    ):
        clip_score(cache, "clip-vitb32")
    card.with_name("small.safetensors").rename(tmp_path / "small.safetensors")
    with pytest.raises(fe.DataError, match=r"small\.safetensors, are not at"):
        clip_score(cache, str(card))
    (tmp_path / "small.safetensors").rename(card.with_name("small.safetensors"))


def test_a_word_whose_images_do_not_fit_is_found_with_its_model(vectors, clip):
    gen, ref = rows_of(4, 1, vectors, wrong=["cat"]), rows_of(4, 2, vectors)
    found = differences(gen, ref, str(clip[1]))
    (cat,) = [one for one in found.words if one.what == "fit"]
    assert (cat.text, cat.prompts) == ("cat", 12)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    means = []
    for one in (gen, ref):
        rows = one.rows_at(np.arange(one.n)).numpy().astype(float)
        cosine = (rows * np.repeat(unit, 4, 0)).sum(1) / np.linalg.norm(rows, axis=1)
        means.append((2.5 * cosine.clip(0)).reshape(-1, 4).mean(1))
    at = ["cat" in name for name in PROMPTS]
    expected = (means[0] - means[1])[at]
    assert cat.difference == pytest.approx(expected.mean(), abs=1e-5)
    half = stats.t.ppf(0.975, 11) * expected.std(ddof=1) / np.sqrt(12)
    assert cat.interval == pytest.approx((expected.mean() - half, expected.mean() + half), abs=1e-5)
    assert [cat.sets[label].fit for label in ("gen", "ref")] == pytest.approx(
        [one[at].mean() for one in means], abs=1e-5
    )
    assert found.fits["gen"].value == pytest.approx(means[0].mean(), abs=1e-5)
    assert found.fit.difference == pytest.approx((means[0] - means[1]).mean(), abs=1e-5)
    assert found.fit.p_value == pytest.approx(stats.ttest_rel(*means).pvalue)
    assert found.unmeasured == ""
    assert "In gen, images fit prompts with “cat” less." in list(found.sentences({"gen": "gen", "ref": "ref"}))
    worst = [one for one in found.prompts if one.fit.p_value is not None and one.fit.p_value <= 0.2]
    assert worst
    assert all("cat" in one.text and one.fit.interval[1] < 0 for one in worst)


@pytest.mark.long
def test_prompts_that_are_longer_than_the_tower_reads_are_said(vectors, clip):
    """CLIP reads 77 tokens, of which two mark the ends: the 76th of a prompt is left out."""
    texts = {name: name + " cat" * (71 + (number == 0)) for number, name in enumerate(PROMPTS)}
    sets = [rows_of(2, seed, vectors) for seed in (1, 2)]
    assert differences(*sets, str(clip[1])).unmeasured == ""
    long = [
        fe.EmbeddingSet(
            one.rows_at(np.arange(one.n)), metadata={"prompt": [texts[name] for name in one.column("prompt")]}
        )
        for one in sets
    ]
    found = differences(*long, str(clip[1]))
    assert found.unmeasured == "the end of 1 of 48 prompts is not read: the text tower of small-clip takes 77 tokens"
    assert found.fits
    assert found.unmeasured.removeprefix("the") in prompt_tables(found, {"gen": "gen", "ref": "ref"})[0].legend
    assert clip_score(long[0], str(clip[1])).unread == found.unmeasured
    assert found.unmeasured in fe.compare(*long, text=str(clip[1]), features=20, modes=1).warnings


def test_page_terminal_and_file_show_the_fit(vectors, clip, tmp_path, capsys):
    found = fe.compare(
        rows_of(4, 1, vectors, wrong=["cat"]), rows_of(4, 2, vectors), pairs="prompt", text=str(clip[1]), features=50
    )
    fe.report.show(found)
    page = found.to_html(tmp_path / "page.html").read_text()
    for text in (page, capsys.readouterr().out):
        assert "Fit of images to their prompts" in " ".join(text.split())
        assert f"{found.prompts.fits['gen'].value:.3f}" in text
    assert "In gen, images fit prompts with “cat” less" in found.headline
    found.save(tmp_path / "c.h5")
    assert fe.load(tmp_path / "c.h5").prompts == found.prompts


def test_a_prompt_whose_images_are_nearer_than_by_chance_is_not_significant():
    one = Permuted(3)
    rng = np.random.default_rng(0)
    weight = np.repeat([0.25, -0.25], 4)
    signs = rng.permuted(np.tile(weight, (999, 1)), axis=1)
    near = np.tile(rng.normal(size=(4, 3)), (2, 1))  # both sets have the same four images
    far = rng.normal(size=(8, 3)) + 5 * np.repeat([1, -1], 4)[:, None]
    for block, rows in ((0, near), (2, far)):
        one.add(block, rows, weight, signs)
    p_values = one.p_values()
    assert p_values[0] == 1
    assert np.isnan(p_values[1])
    assert p_values[2] <= 0.06


def test_p_values_of_prompts_are_those_of_the_largest_of_all():
    rng, weight = np.random.default_rng(0), np.repeat([0.25, -0.25], 4)
    signs = rng.permuted(np.tile(weight, (999, 1)), axis=1)
    shifted = rng.normal(size=(8, 3)) + 0.8 * np.sign(weight)[:, None]
    one, all_ = Permuted(1), Permuted(30)
    for block, rows in enumerate([shifted, *rng.normal(size=(29, 8, 3))]):
        all_.add(block, rows, weight, signs)
    one.add(0, shifted, weight, signs)
    assert one.p_values()[0] <= 0.05
    assert all_.p_values()[0] > 4 * one.p_values()[0]


@pytest.mark.parametrize("families", [2, 3])
def test_the_families_of_words_share_the_error(vectors, clip, monkeypatch, families):
    parts = []
    monkeypatch.setattr(
        "finc_eval.prompts.table.choose", lambda phrases, data, prompt, seed, part, before=(): parts.append(part) or ()
    )
    differences(rows_of(2, 1, vectors), rows_of(2, 2, vectors), str(clip[1]) if families == 3 else None)
    assert len(parts) == families and sum(parts) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "do not say which model made them: name its card"), ("pixels", "pixels has no text tower")],
    ids=["arrays", "pixels"],
)
def test_what_is_not_measured_is_said(vectors, text, message):
    found = differences(rows_of(2, 1, vectors), rows_of(2, 2, vectors), text)
    (table, *_) = prompt_tables(found, {"gen": "gen", "ref": "ref"})
    assert f"The fit of images to their prompts is not measured: {found.unmeasured.partition(': ')[2]}." in table.legend
    assert found.fits == {}
    assert found.fit is None
    assert message in found.unmeasured
    assert all(one.fit is None for one in found.prompts)


def test_missing_weights_leave_the_fit_unmeasured(vectors, clip, tmp_path):
    card = tmp_path / "absent.toml"
    card.write_text(clip[1].read_text().replace("./small.safetensors", "./absent.safetensors"))
    found = differences(rows_of(2, 1, vectors), rows_of(2, 2, vectors), str(card))
    assert "absent.safetensors, are not at" in found.unmeasured


@pytest.mark.long
def test_equal_models_have_words_of_unlike_fit_as_often_as_stated(vectors, clip, monkeypatch):
    """A third of 5 % of the runs may have such a word, and p-values of models hold; effects of prompts are large."""
    rng, runs = np.random.default_rng(3), 60
    table = torch.from_numpy(vectors)
    monkeypatch.setattr("finc_eval.prompts.text.embed_prompts", lambda *given: (table, ""))
    turned = np.linalg.qr(rng.normal(size=(16, 16)))[0]
    uneven = 0.6 * vectors + 0.8 * vectors @ turned  # prompts that are drawn well and badly
    words = sum(
        any(
            one.what == "fit"
            for one in differences(rows_of(2, seed, uneven), rows_of(2, 500 + seed, uneven), "a.npz").words
        )
        for seed in range(runs)
    )
    assert words <= stats.binom.ppf(0.999, runs, 0.05 / 3)
    held = [Estimate.of_mean(rng.standard_t(3, size=12)).p_value <= 0.05 for _ in range(2000)]
    assert sum(held) <= stats.binom.ppf(0.999, 2000, 0.05)


@pytest.mark.parametrize("wrong", [(), ("cat", "red")], ids=["as before", "two words wrong"])
def test_two_runs_of_one_seed_say_whether_images_fit_their_prompts_less(wrong, vectors, clip):
    def named(one):
        names = [f"{number:04d}.png" for number in range(one.n)]
        return fe.EmbeddingSet(one.rows_at(np.arange(one.n)).numpy(), names, {"prompt": one.column("prompt")})

    old, new = (named(rows_of(4, 0, vectors, words)) for words in ((), wrong))
    found = fe.compare(new, old, pairs="id", text=str(clip[1]), features=100).by_id
    (fit,) = (one for one in (*found.worse, *found.not_worse, *found.undecided) if one.what == "fit")
    assert fit.verdict == ("worse" if wrong else "not worse")
    assert not wrong or "less fitting to the prompts" in found.sentences["worse"]
