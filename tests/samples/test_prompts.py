"""Prompts are found where programs leave them: beside the samples, in them, in folders, lists and names."""

import json
import zlib

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

import finc_eval as fe
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.png_texts import png_prompt
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import open_embeddings
from finc_eval.samples.opening import open_source

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
        picture(folder / f"{number:05d}/grid.png")
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


def in_names(folder, before=""):
    for prompt in PROMPTS:
        for seed in range(2):
            picture(folder / f"{prompt.replace(' ', '_')}_{before}{seed}.png")


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
    "names with seed": lambda folder: in_names(folder, "seed_"),
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
    assert [found[name] for name in sorted(found)] == (sorted(expected) if "names" in form else expected)
    if form in ("json", "names", "names with seed"):
        assert sorted(source.columns["seed"]) == ["0", "0", "1", "1"]
    if form == "geneval":
        assert set(source.columns["tag"]) == {"color"}
        assert source.ignored == {"pictures beside a folder of samples": 2}


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


ENCODED = {"class_type": "CLIPTextEncode", "inputs": {"text": "a cat", "clip": ["4", 1]}}
AVOIDED = {"class_type": "CLIPTextEncode", "inputs": {"text": "blurry", "clip": ["4", 1]}}
SAMPLER = {"class_type": "KSampler", "inputs": {"seed": 5, "positive": ["6", 0], "negative": ["7", 0]}}


def comfy(**nodes):
    """A graph of ComfyUI, the text to avoid first; NaN is what it writes for what has not changed."""
    graph = {"7": AVOIDED, "6": ENCODED, "3": SAMPLER, "9": {"class_type": "SaveImage", "is_changed": [float("nan")]}}
    return json.dumps(graph | {name.strip("_"): node for name, node in nodes.items()})


WORKFLOW = {
    "nodes": [
        {"id": 7, "type": "CLIPTextEncode", "inputs": [{"name": "clip", "link": 1}], "widgets_values": ["blurry"]},
        {"id": 6, "type": "CLIPTextEncode", "inputs": [{"name": "clip", "link": 1}], "widgets_values": ["a cat"]},
        {"id": 3, "type": "KSampler", "inputs": [{"name": "negative", "link": 3}, {"name": "positive", "link": 2}]},
        {"id": "x", "inputs": [3, None, {"name": []}], "widgets_values": {"a": 1}},
        None,
    ],
    "links": [[1, 4, 1, 6, 0, "CLIP"], [2, 6, 0, 3, 1, "CONDITIONING"], [3, 7, 0, 3, 2, "CONDITIONING"], 5, []],
}


@pytest.mark.parametrize(
    ("key", "text", "prompt"),
    [
        ("parameters", "a cat\nNegative prompt: blurry\nSteps: 20, Seed: 1", "a cat"),
        ("parameters", "Negative prompt: blurry\nSteps: 20", None),
        ("parameters", "Steps: 20, Sampler: Euler", None),
        ("parameters", json.dumps({"sui_image_params": {"prompt": "a cat", "seed": 1}}), "a cat"),
        ("parameters", json.dumps({"prompt": "a cat", "negative_prompt": "blurry"}), "a cat"),
        ("invokeai_metadata", json.dumps({"positive_prompt": "a cat"}), "a cat"),
        ("sd-metadata", json.dumps({"image": {"prompt": [{"prompt": "a cat", "weight": 1}]}}), "a cat"),
        ("sd-metadata", json.dumps({"image": [{"prompt": "a cat"}]}), None),
        ("Comment", json.dumps({"prompt": "a cat", "steps": 28}), "a cat"),
        ("prompt", "a cat", "a cat"),
        ("prompt", json.dumps({"3": {"class_type": "KSampler"}}), None),
        ("prompt", comfy(), "a cat"),
        ("prompt", comfy(_6={"inputs": {"text": ["8", 0]}}, _8={"inputs": {"string": "a cat"}}), "a cat"),
        ("prompt", comfy(_6={"inputs": {"text_g": "a cat", "text_l": "other"}}), "a cat"),
        ("prompt", comfy(_6={"inputs": {"conditioning": ["8", 0]}}, _8=ENCODED), "a cat"),
        ("prompt", comfy(_3={"inputs": {"conditioning": ["6", 0]}}), "a cat"),
        ("prompt", comfy(_6={"inputs": {"conditioning": ["6", 0]}}), None),
        ("prompt", comfy(_6={"inputs": [1]}), None),
        ("prompt", comfy(_3={"inputs": {"positive": ["none", 0]}}), None),
        ("workflow", json.dumps(WORKFLOW), "a cat"),
        ("workflow", json.dumps({"nodes": [{"id": []}], "links": 3}), None),
        ("workflow", "[" * 100_000, None),
        ("prompt", "{" * 100_000, None),
        ("Software", "paint", None),
    ],
)
def test_texts_of_common_programs_are_read(tmp_path, key, text, prompt):
    picture(tmp_path / "a.png", text, key)
    assert png_prompt((tmp_path / "a.png").read_bytes()) == prompt


@pytest.mark.parametrize("kind", ["zTXt", "iTXt"])
def test_compressed_texts_are_read_and_bombs_are_not(tmp_path, kind):
    info = PngImagePlugin.PngInfo()
    add = info.add_text if kind == "zTXt" else info.add_itxt
    add("parameters", "a café, größer\nSteps: 20", zip=True)
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "a.png", pnginfo=info)
    data = (tmp_path / "a.png").read_bytes()
    assert kind.encode() in data
    assert b"Steps" not in data
    assert open_source(tmp_path).prompts == ["a café, größer"]
    for place in range(data.index(kind.encode()), data.index(b"IDAT"), 3):
        png_prompt(data[:place] + b"\xff" + data[place + 1 :])  # damaged bytes end in no error
    bomb = b"prompt\0\0" + zlib.compress(b"a" * 20_000_000)
    chunk = len(bomb).to_bytes(4) + b"zTXt" + bomb + zlib.crc32(b"zTXt" + bomb).to_bytes(4)
    assert len(png_prompt(data[:33] + chunk + data[33:]) or "") < 5_000_000


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("edge", [10_000, 20_000])
def test_prompts_of_large_pictures_are_read_by_our_limit_of_pixels(tmp_path, monkeypatch, edge):
    """Pillow's own limit would warn of an attack, or take the prompt away."""
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "16GiB")
    picture(tmp_path / "a.png", "a cat\nSteps: 20", "parameters")
    data = (tmp_path / "a.png").read_bytes()
    header = b"IHDR" + edge.to_bytes(4) * 2 + data[24:29]
    (tmp_path / "a.png").write_bytes(data[:12] + header + zlib.crc32(header).to_bytes(4) + data[33:])
    assert open_source(tmp_path).prompts == ["a cat"]


def test_a_prompt_behind_a_long_text_is_read(tmp_path):
    picture(tmp_path / "a.png", comfy(note={"inputs": {"other": "x" * 200_000}}), "prompt")
    assert open_source(tmp_path).prompts == ["a cat"]


def written(folder, name):
    """Two images each of two prompts, numbered from 1, and a file of prompts in another folder."""
    for number in (1, 2):
        for seed in range(2):
            picture(folder / f"images/{number}_{seed}.png")
    rows = [(f"{number + 1}_{seed}.png", one) for number, one in enumerate(PROMPTS) for seed in range(2)]
    (folder / name).write_text(
        {
            "list.txt": "\n".join(PROMPTS),
            "list.tsv": "\n".join(["Prompt\tCategory", *(f"{one}\tanimals" for one in PROMPTS)]),
            "list.csv": "\n".join(["Prompts,Category", *(f'"{one}",animals' for one in PROMPTS)]),
            "list.jsonl": "\n".join(json.dumps({"tag": "x", "prompt": one}) for one in PROMPTS),
            "names.csv": "\n".join(["file_name,caption", *(f'{name},"{one}"' for name, one in rows[::-1])]),
            "names.jsonl": "\n".join(json.dumps({"file_name": name, "text": one}) for name, one in rows[::-1]),
        }[name]
    )
    return folder / "images", folder / name


@pytest.mark.parametrize("name", ["list.txt", "list.tsv", "list.csv", "list.jsonl", "names.csv", "names.jsonl"])
def test_a_file_of_prompts_is_named(tmp_path, name):
    images, path = written(tmp_path, name)
    (images / "prompts.txt").write_text("what is found\nbeside the samples")
    expected = [one for one in PROMPTS for _ in range(2)]
    assert fe.extract(images, "pixels", out=tmp_path / "a.h5", prompts=path).column("prompt") == expected


def test_a_column_of_prompts_is_named(tmp_path):
    for number in range(2):
        picture(tmp_path / f"{number}.png")
    rows = "\n".join(f'{number}.png,"{one}"' for number, one in enumerate(PROMPTS))
    (tmp_path / "metadata.csv").write_text("file_name,instruction\n" + rows)
    assert fe.extract(tmp_path, "pixels", out=tmp_path / "a.h5", prompts="instruction").column("prompt") == PROMPTS
    with pytest.raises(UsageError, match="prompts is 'instrution', and the samples have the columns instruction"):
        open_source(tmp_path, prompts="instrution")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.txt", "one", "has 1 prompt, and a sample has the number 2"),
        ("p.txt", "", "has no prompts"),
        ("p.jsonl", "[1]", "has no prompts"),
        ("p.jsonl", "{", "line 1 cannot be read as JSON"),
        ("p.csv", "tag,other\n1,2\n3,4", "has no prompts: call their column prompt"),
        ("p.txt", b"\xff\xfe\x00", "is a binary file, not a list of prompts"),
        ("absent.txt", None, "does not exist"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path, name, text, message):
    images, _ = written(tmp_path, "list.txt")
    if text is not None:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match=message):
        open_source(images, prompts=tmp_path / name)


def test_names_without_numbers_need_names_in_the_file(tmp_path):
    picture(tmp_path / "images/cat.png")
    (tmp_path / "list.txt").write_text("a cat")
    with pytest.raises(DataError, match=r"'cat\.png' has no number: begin the names of samples"):
        open_source(tmp_path / "images", prompts=tmp_path / "list.txt")


def test_prompts_of_embedded_sets_are_refused(tmp_path):
    images, path = written(tmp_path, "list.txt")
    fe.extract(images, "pixels", out=tmp_path / "a.h5")
    with pytest.raises(UsageError, match="prompts are read with samples, and a is embedded already"):
        open_embeddings({"a": tmp_path / "a.h5", "b": images}, fe.Extraction("pixels", prompts=str(path)), Run())
