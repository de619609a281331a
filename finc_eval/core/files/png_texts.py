"""`png_prompt`: the prompt that a program left in the text of a PNG file.

The text is of strangers. It is parsed, with bounds on its depth and on the steps that are followed in it, and returned
as it is; nothing in it is run, or looked up.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from PIL import Image

from finc_eval.core.errors import DataError
from finc_eval.core.files.parsed import foreign_json

Item = TypeVar("Item")

PNG = b"\x89PNG\r\n\x1a\n"  # first bytes of a PNG file

KEYS = ("parameters", "invokeai_metadata", "sd-metadata", "Comment", "prompt", "workflow")
"""Keys of the texts of Stable Diffusion web UIs, Fooocus and SwarmUI, of InvokeAI (now, and once), of NovelAI, and of
ComfyUI, in the order of the search."""

STATED = (("positive_prompt",), ("prompt",), ("image", "prompt"), ("sui_image_params", "prompt"))
"""Places of the prompt in the JSON of programs that state it."""

AFTER_PROMPT = re.compile(r"(?:^|\n)(?:Negative prompt: |Steps: )")

TEXTS = ("text", "text_g", "t5xxl", "clip_l", "prompt", "string", "value")  # inputs of ComfyUI's nodes that are texts


def png_prompt(data: bytes) -> str | None:
    """Return the prompt in the text chunks of the beginning of a PNG file; None without one."""
    texts = _png_texts(data)
    for key in KEYS:
        text = texts.get(key, "").strip()
        parsed: Any = None
        if text.startswith("{"):
            try:
                parsed = foreign_json(text, key)
            except DataError:
                continue
        prompt = (_find_in_json(parsed) if parsed else text if key == "prompt" else None) or (
            AFTER_PROMPT.split(text)[0] if key == "parameters" and not parsed else ""
        )
        if prompt.strip():
            return prompt.strip()
    return None


def _find_in_json(parsed: Any) -> str:
    """Return the prompt that JSON states, or that is encoded for a sampler in a graph of ComfyUI."""
    for path in STATED:
        inside = parsed
        for key in path:
            inside = inside.get(key) if isinstance(inside, Mapping) else None
        if isinstance(inside, list) and inside and isinstance(inside[0], Mapping):
            inside = inside[0].get("prompt")  # InvokeAI 2: weighted prompts
        if isinstance(inside, str):
            return inside
    nodes = _graph(parsed)
    # The nodes that take a positive prompt, or else those whose prompt no other node takes further.
    samplers = [key for key, inputs in nodes.items() if _link(inputs.get("positive"))]
    if not samplers:
        conditioned = [key for key, inputs in nodes.items() if _link(inputs.get("conditioning"))]
        taken = {_link(nodes[key]["conditioning"]) for key in conditioned}
        samplers = [key for key in conditioned if key not in taken]
    return next(filter(None, (_trace(nodes, node) for node in samplers)), "")


def _graph(parsed: Any) -> dict[str, Mapping[str, Any]]:
    """Return the inputs of the nodes of a graph of ComfyUI by their ids; a link is [id, number of the output]."""
    if isinstance(parsed, Mapping) and isinstance(parsed.get("nodes"), list):  # a workflow: links apart, texts unnamed
        rows = [row for row in _keep(parsed.get("links"), list) if len(row) > 2]
        links = {str(row[0]): str(row[1]) for row in rows}
        nodes: dict[str, Mapping[str, Any]] = {}
        for node in _keep(parsed["nodes"], dict):
            given = {str(entry.get("name")): str(entry.get("link")) for entry in _keep(node.get("inputs"), dict)}
            inputs: dict[str, Any] = {name: [links[link], 0] for name, link in given.items() if link in links}
            if "text" not in inputs:  # not from another node
                inputs["text"] = next(iter(_keep(node.get("widgets_values"), str)), "")
            nodes[str(node.get("id"))] = inputs
        return nodes
    if not isinstance(parsed, Mapping):
        return {}
    every = {str(key): node.get("inputs") for key, node in parsed.items() if isinstance(node, Mapping)}
    return {key: inputs for key, inputs in every.items() if isinstance(inputs, Mapping)}


def _keep(value: Any, kind: type[Item]) -> list[Item]:
    """Return the items of a list that are of a type."""
    return [part for part in value if isinstance(part, kind)] if isinstance(value, list) else []


def _trace(nodes: Mapping[str, Mapping[str, Any]], start: str) -> str:
    """Return the first text on the way from a sampler to what its positive prompt is made of."""
    waiting, seen = [start], set[str]()
    # 1000: nodes of ComfyUI that are visited.
    while waiting and len(seen) < 1000:
        here = waiting.pop()
        inputs = nodes.get(here)
        if here in seen or inputs is None:
            continue
        seen.add(here)
        stated = next((text for key in TEXTS if isinstance(text := inputs.get(key), str) and text.strip()), None)
        if stated is not None and here != start:
            return stated
        on = [key for key in inputs if key in TEXTS or key == "positive" or key.startswith(("conditioning", "cond"))]
        waiting += [link for key in reversed(on) if (link := _link(inputs[key]))]
    return ""


def _link(value: Any) -> str:
    """Return the node that an input is linked to; "" for an input that is not a link."""
    is_link = isinstance(value, list) and len(value) == 2 and isinstance(value[0], int | str)
    return str(value[0]) if is_link else ""


def _png_texts(data: bytes) -> dict[str, str]:
    """Return the texts of a PNG file before its pixels, by key, as Pillow reads them; none of another file."""
    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            return {key: text for key, text in image.info.items() if isinstance(key, str) and isinstance(text, str)}
    except Exception:  # Pillow's readers raise almost anything on damaged bytes
        return {}
