"""Attributes that pictures of prompts with a word have more often: labels, columns, looks, classes and kinds."""

import numpy as np
import pytest
from PIL import Image

import finc_eval as fe
from finc_eval.demo.prompts import prompted_sets
from finc_eval.naming.traits import TRAITS

WORDS = ("cat", "dog", "tree", "house", "alone", "red", "old", "tall")


def prompts_of(count, each, rng):
    """Prompts of two words and a number, each several times."""
    texts = [f"{' '.join(rng.choice(WORDS, 2, replace=False))} {number}" for number in range(count)]
    return np.repeat(texts, each).tolist()


def labeled(prompts, rng, share):
    """A set whose pictures of prompts with "alone" are more often wet; where wet, they are of one kind."""
    wet = rng.random(len(prompts)) < np.where(["alone" in text for text in prompts], share, 0.05)
    rows = rng.normal(size=(len(prompts), 16)).astype(np.float32)
    rows[wet, 0] += 8
    metadata = {
        "prompt": prompts,
        "weather": np.where(wet, "wet", "dry").tolist(),
        "day": rng.choice(list("mtw"), len(prompts)).tolist(),
    }
    return fe.EmbeddingSet(rows, metadata=metadata)


def cells_between(gen, ref):
    return fe.compare(gen, ref, pairs="prompt", features=100).prompts.cells


@pytest.mark.parametrize(("count", "each"), [(60, 3), (200, 1)])
def test_what_pictures_of_a_word_have_is_one_cell_with_its_shares(count, each):
    rng = np.random.default_rng(1)
    prompts = prompts_of(count, each, rng)
    gen, ref = labeled(prompts, rng, 0.7), labeled(prompts, rng, 0.05)
    (cell,) = cells_between(gen, ref)
    assert (cell.word, cell.name, cell.what) == ("alone", "wet", "weather")
    alone = ["alone" in text for text in prompts]
    for samples, share in ((gen, cell.share_gen), (ref, cell.share_ref)):
        assert share == pytest.approx(np.mean(np.array(samples.column("weather"))[alone] == "wet"))
    assert cell.p_value <= 0.05
    assert cell.prompts == len({text for text in prompts if "alone" in text})
    assert set(cell.sets) == {"gen", "ref"} and all(cell.sets.values())


def test_sets_of_one_law_have_no_cell():
    for seed in range(6):
        rng = np.random.default_rng([7, seed])
        prompts = prompts_of(60, 2, rng)
        assert cells_between(labeled(prompts, rng, 0.4), labeled(prompts, rng, 0.4)) == ()


def test_what_all_prompts_have_is_one_cell_of_all_prompts_and_a_column_of_one_set_is_none():
    rng = np.random.default_rng(3)
    prompts = prompts_of(100, 2, rng)
    gen = labeled([f"{text} alone" for text in prompts], rng, 0.5)
    gen = fe.EmbeddingSet(gen.rows_at(np.arange(gen.n)), metadata={"prompt": prompts, "weather": gen.column("weather")})
    (cell,) = cells_between(gen, labeled(prompts, rng, 0.05))
    assert (cell.word, cell.name, cell.title) == ("", "wet", "all prompts")


def test_a_look_of_pictures_is_named_and_both_rows_of_pictures_are_of_these_prompts(tmp_path):
    rng = np.random.default_rng(5)
    prompts = prompts_of(60, 1, rng)

    def pictures(folder, gray):
        (tmp_path / folder).mkdir()
        lines = ["file_name,prompt"]
        for number, text in enumerate(prompts):
            image = Image.fromarray(rng.integers(0, 255, (4, 4, 3), np.uint8)).resize((32, 32))
            if gray and "alone" in text:
                image = image.convert("L").convert("RGB")
            image.save(tmp_path / folder / f"{number}.png")
            lines.append(f"{number}.png,{text}")
        (tmp_path / folder / "metadata.csv").write_text("\n".join(lines))
        return tmp_path / folder

    found = fe.compare(pictures("gen", True), pictures("ref", False), pairs="prompt", extractor="pixels", features=100)
    cell = found.prompts.cells[0]
    assert (cell.word, cell.what) == ("alone", "look")
    assert "gray" in cell.name or "colo" in cell.name
    shown = {int(name.partition(".")[0]) for ids in cell.sets.values() for name in ids}
    assert all("alone" in prompts[number] for number in shown)


def test_a_kind_is_not_named_by_the_words_of_its_prompts():
    rng = np.random.default_rng(1)
    prompts = prompts_of(60, 3, rng)
    gen, ref = (labeled(prompts, rng, share) for share in (1.0, 0.05))
    (cell,) = cells_between(*(fe.EmbeddingSet(one._rows, metadata={"prompt": prompts}) for one in (gen, ref)))
    assert (cell.word, cell.what) == ("alone", "kind") and "prompt" not in cell.name


def test_what_no_word_says_of_pictures_is_no_cell_and_no_plan():
    sets = (
        fe.EmbeddingSet(each.rows, images=list(each.images), metadata={"prompt": each.prompts})
        for each in prompted_sets(60, 2, 104, faults=False)  # few of one set are pixelated, which has no word
    )
    table = fe.compare(*sets, pairs="prompt", features=50).prompts
    cells = [*table.cells, *(plan.cell for plan in table.plans)]
    names = {cell.name for cell in cells if cell.what == "look"}
    assert names <= {word for trait in TRAITS for word in (trait.low, trait.high) if word}
