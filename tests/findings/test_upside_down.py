"""Pictures upside down, and faults of clips, from samples to the sentence."""

from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import finc_eval as fe
from finc_eval.embeddings.stored import turned
from finc_eval.embeddings.stored.turned import Turner
from finc_eval.extractors.card import CARDS
from finc_eval.findings.facts import name_alone
from finc_eval.findings.finding import have_part, with_part
from finc_eval.findings.local import PartOfSet


def scenes(rng, n, size=56):
    """Pictures with a bright sky above a dark ground: anybody sees which side is up."""
    sky, ground = rng.uniform(150, 250, (n, 1, 1, 3)), rng.uniform(0, 90, (n, 1, 1, 3))
    height = rng.integers(size // 3, 2 * size // 3, n)[:, None, None, None]
    drawn = np.where(np.arange(size)[:, None, None] < height, sky, ground) + rng.normal(0, 12, (n, size, size, 3))
    return drawn.clip(0, 255).astype(np.uint8)


def folder(path, pixels):
    path.mkdir()
    for number, each in enumerate(pixels):
        Image.fromarray(each).save(path / f"{number:03}.png")
    return path


@pytest.mark.long
def test_pictures_upside_down_are_said_and_turned_once(tmp_path, monkeypatch):
    monkeypatch.setattr(turned, "LEAST_TURNED", 40)
    pixels = scenes(np.random.default_rng(0), 80)
    pixels[:12] = pixels[:12, ::-1, ::-1]
    sets = folder(tmp_path / "gen", pixels[:40]), folder(tmp_path / "ref", pixels[40:])
    found = fe.compare(*sets, features=20, modes=1)
    (part,) = (part for part in found.parts if part.kind == "orientation")
    assert (part.name, part.side) == ("upside down", "more") and 0.05 < part.at_least <= 0.3
    assert len({int(Path(name).stem) for name in part.samples[:12]} & {*range(12)}) >= 10
    monkeypatch.delattr(Turner, "_embed")
    assert fe.compare(*sets, features=20, modes=1).parts == found.parts


def test_a_state_of_pictures_is_said_as_what_they_are():
    part = PartOfSet("orientation", "upside down", "more", 0.002, 0.2, 0.02, 0.1, ("1.png",))
    lack = PartOfSet("orientation", "upside down", "less", 0.002, 0.02, 0.2, 0.1, ("1.png",))
    assert (part.finding.words, name_alone(part.finding)) == ("pictures upside down", "upside down")
    assert (lack.finding.words, name_alone(lack.finding)) == ("fewer pictures upside down", "fewer upside down")
    assert have_part("upside down") == "are upside down" and have_part("a border") == "have a border"
    assert with_part("a border") == "with a border"


@pytest.mark.long
def test_a_fault_in_a_corner_of_a_fifth_of_the_clips_is_found(tmp_path):
    text = (resources.files(CARDS) / "efficientnet-lite0.toml").read_text(encoding="utf-8")
    text = text.split("[golden]")[0].replace("dimension = 1280", 'dimension = 1280\nframes = "mean"')
    card = tmp_path / "card.toml"
    card.write_text(f'{text}\n[clip]\nframes = 3\nstride = 1\nwindows = 1\nshort = "hold"\n')
    rng, sets = np.random.default_rng(1), []
    for planted in (16, 0):
        pictures = scenes(rng, 80)
        clips = np.stack([np.roll(pictures, 2 * frame, 2) for frame in range(3)], 1)
        clips[:planted, :, -18:-4, -18:-4] = (200, 40, 160)
        np.savez(tmp_path / f"{planted}.npz", clips)
        sets.append(tmp_path / f"{planted}.npz")
    found = fe.compare(*sets, extractor=card, features=20, modes=1)
    (part,) = (part for part in found.parts if part.side == "more")
    assert part.kind == "patches" and 0.02 < part.at_least <= 0.2
    assert len({*part.samples[:12]} & {f"{number}" for number in range(16)}) >= 10
    row, column = divmod(int(np.mean(part.heat, 0).argmax()), 7)
    assert min(row, column) >= 4
