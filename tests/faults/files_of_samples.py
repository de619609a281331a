"""Files of samples, settings, cards and judges: how each is made, opened and used."""

import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from faults.content import pictures, png
from PIL import Image

import finc_eval as fe
from finc_eval.judges.scores import read_scores
from finc_eval.judges.strengths import Strengths
from finc_eval.judges.votes import read_votes
from finc_eval.samples.clips import Clip
from finc_eval.samples.opening import open_source


def make_settings(path):
    path.write_text(
        '[compare]\nrho = 1.5\nmodes = 7\nsigma = 2.0\nmethod = {name = "finc", clusters = false}\ngroups = "video"\n'
    )


def use_settings(path):
    return fe.Settings.read(path, "compare")


def make_card(path):
    path.write_text((Path(__file__).parents[2] / "extractors" / "dinov2-vits14.toml").read_text())


def make_images(path):
    np.savez_compressed(path, images=pictures(), labels=np.arange(8))


def make_clips(path):
    np.savez(path, arr_0=np.stack([pictures(4)] * 3))


def members():
    table = "file_name,label,text\n" + "".join(f"{row}.png,{row % 2},a {row}\n" for row in range(8))
    return {**{f"{row}.png": png(pixels) for row, pixels in enumerate(pictures())}, "metadata.csv": table.encode()}


def make_zip(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members().items():
            file.writestr(name, data)


def make_zip_of_stylegan(path):
    labels = {"labels": [[f"{row}.png", row % 3] for row in range(8)]}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in {**members(), "dataset.json": json.dumps(labels).encode()}.items():
            if name != "metadata.csv":
                file.writestr(name, data)


def make_tar(path):
    with tarfile.open(path, "w") as file:
        for row, pixels in enumerate(pictures()):
            beside = {"cls": b"3", "json": json.dumps({"label": row, "caption": "x"}).encode(), "png": png(pixels)}
            for suffix, data in beside.items():
                info = tarfile.TarInfo(f"a/{row}.{suffix}")
                info.size = len(data)
                file.addfile(info, io.BytesIO(data))


def use_tar(path):
    """Whatever the members are called and point at, nothing is written, and nothing outside is read."""
    before = sorted(path.parent.rglob("*"))
    found = use_samples(path)
    assert sorted(path.parent.rglob("*")) == before
    return found


def use_samples(path, clip=None):
    source = open_source(path, clip=clip)
    found = [
        (sample.id, sample.error, None if sample.pixels is None else sample.pixels.shape) for sample in source.samples()
    ]
    source.manifest()
    assert all("\n" not in (error or "") for _, error, _ in found)
    return found, source.labels, source.prompts


FORMATS = {".png": "PNG", ".jpg": "JPEG", ".webp": "WEBP", ".gif": "GIF", ".bmp": "BMP", ".tiff": "TIFF"}


def make_image(path):
    path.write_bytes(png(pictures(1, 40)[0], FORMATS[path.suffix]))


def make_video(path):
    from _videos import encode, scene

    path.write_bytes(encode(path.suffix[1:], scene(8, 32, 32)))


VOTE_ROWS = [f"p{n % 5},{'ab'[n % 2]},{'ba'[n % 2]},{('a', 'b', 'tie')[n % 3]},v{n % 4}" for n in range(24)]
SCORE_ROWS = [
    {"id": f"{n}.png", "prompt": f"p{n % 6}", "tag": "xy"[n % 2], "clip": n / 7, "ok": n % 3 > 0} for n in range(24)
]


def make_votes(path):
    path.write_text("\n".join(["prompt,left,right,winner,voter", *VOTE_ROWS]) + "\n")


def use_votes(path):
    found = Strengths.of(read_votes(path, ("a", "b")))
    return repr((found.fit.strengths.tolist(), found.spread.covariance.tolist()))


def make_judged(path):
    videos = [
        {"video_path": f"{one['prompt']}-{n}.mp4", "video_results": one["clip"]} for n, one in enumerate(SCORE_ROWS)
    ]
    lines = [json.dumps(one) for one in SCORE_ROWS]
    path.write_text(json.dumps({"clip": [0.5, videos]}) if path.suffix == ".json" else "\n".join(lines) + "\n")


def use_judged(path):
    found = read_scores({"a": path}, ("a",))["a"]
    return repr({name: (own.tolist(), found.prompts, found.labels) for name, own in found.judges.items()})


CLIP = Clip(4, 1, 1, "loop")


def use_video(path):
    return use_samples(path.parent, CLIP)


def make_animation(path):
    from _videos import scene

    frames = [Image.fromarray(frame) for frame in scene(8, 32, 32)]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=40)
