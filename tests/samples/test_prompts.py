"""Prompts are found where programs leave them: beside the samples, in them, in folders, lists and names."""

import json

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from finc_eval.core.errors import DataError
from finc_eval.samples import open_source
from finc_eval.samples.metadata import png_prompt

PROMPTS = ["a red cat on grass", "a blue dog, very large"]
HOSTILE = "</script><b>\x00 \u202e{{7*7}}"


def picture(path, prompt=None, key="parameters"):
    path.parent.mkdir(parents=True, exist_ok=True)
    info = PngImagePlugin.PngInfo()
    if prompt is not None:
        info.add_itxt(key, prompt)
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(path, pnginfo=info)


def geneval(folder):
    for number, prompt in enumerate(PROMPTS):
        for seed in range(2):
            picture(folder / f"{number:05d}/samples/{seed:04d}.png")
        row = {"tag": "color", "include": [{"class": "cat"}], "prompt": prompt}
        (folder / f"{number:05d}/metadata.jsonl").write_text(json.dumps(row) + "\n")


def beside(folder, suffix):
    for number, prompt in enumerate(PROMPTS):
        for seed in range(2):
            picture(folder / f"{number}-{seed}.png")
            text = prompt + "\n" if suffix == ".txt" else json.dumps({"caption": prompt, "seed": seed, "steps": [1]})
            (folder / f"{number}-{seed}{suffix}").write_text(text)


def in_pictures(folder):
    for number, prompt in enumerate(PROMPTS):
        for seed in range(2):
            picture(folder / f"{number}-{seed}.png", f"{prompt}\nNegative prompt: blurry\nSteps: 20, Seed: {seed}")


def in_names(folder):
    for prompt in PROMPTS:
        for seed in range(2):
            picture(folder / f"{prompt.replace(' ', '_')}_{seed}.png")


def listed(folder, name, first):
    for number in range(2):
        for seed in range(2):
            picture(folder / f"{number + first:03d}_{seed}.png")
    head = "Category\tPrompt\n" if name.endswith("tsv") else ""
    lines = [f"animals\t{one}" if head else one for one in PROMPTS]
    (folder / name).write_text(head + "\n".join(lines) + "\n")


FORMS = {
    "geneval": geneval,
    "txt": lambda folder: beside(folder, ".txt"),
    "json": lambda folder: beside(folder, ".json"),
    "png": in_pictures,
    "names": in_names,
    "list from 0": lambda folder: listed(folder, "prompts.txt", 0),
    "list from 1": lambda folder: listed(folder, "prompts.txt", 1),
    "table": lambda folder: listed(folder, "prompts.tsv", 0),
}


@pytest.mark.parametrize("form", FORMS)
def test_prompts_are_found(tmp_path, form):
    FORMS[form](tmp_path)
    source = open_source(tmp_path)
    found = dict(zip(source.ids, source.prompts, strict=True))
    expected = [one for one in PROMPTS for _ in range(2)]
    assert [found[name] for name in sorted(found)] == (sorted(expected) if form == "names" else expected)
    if form in ("json", "names"):
        assert sorted(source.columns["seed"]) == ["0", "0", "1", "1"]
    if form == "geneval":
        assert set(source.columns["tag"]) == {"color"}


def test_names_that_are_not_prompts_are_left_alone(tmp_path):
    for name in ("img_0001", "img_0002", "cat_001", "my_dog_002"):
        picture(tmp_path / f"{name}.png")
    assert open_source(tmp_path).prompts is None


def test_a_number_without_a_prompt_is_refused(tmp_path):
    listed(tmp_path, "prompts.txt", 0)
    picture(tmp_path / "007_0.png")
    with pytest.raises(DataError, match=r"prompts\.txt has 2 prompts, and a sample has the number 7"):
        open_source(tmp_path)


def test_damaged_json_beside_a_sample_is_refused(tmp_path):
    beside(tmp_path, ".json")
    (tmp_path / "1-0.json").write_text("{")
    with pytest.raises(DataError, match=r"1-0\.json"):
        open_source(tmp_path)


def test_untrusted_text_stays_text(tmp_path):
    picture(tmp_path / "a.png", HOSTILE.replace("\x00", " "))
    data = (tmp_path / "a.png").read_bytes()
    assert png_prompt(data) == HOSTILE.replace("\x00", " ").strip()
    for cut in range(0, len(data), 7):
        png_prompt(data[:cut])
    assert png_prompt(b"not a picture") is None


@pytest.mark.parametrize(
    ("key", "text", "prompt"),
    [
        ("invokeai_metadata", json.dumps({"positive_prompt": "a cat"}), "a cat"),
        ("Comment", json.dumps({"prompt": "a cat", "steps": 28}), "a cat"),
        ("prompt", "a cat", "a cat"),
        ("prompt", json.dumps({"3": {"class_type": "KSampler"}}), None),
        ("Software", "paint", None),
    ],
)
def test_texts_of_common_programs_are_read(tmp_path, key, text, prompt):
    picture(tmp_path / "a.png", text, key)
    assert png_prompt((tmp_path / "a.png").read_bytes()) == prompt
