"""Every kind of file that finc-eval opens: how a valid one is made, damaged, opened and used."""

import io
import json
import shutil
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from faults.damage import of_bytes, of_npy, of_own, of_png, of_tar, of_text, of_zip
from PIL import Image

import finc_eval as fe
from finc_eval.embeddings import folder as cache_folder
from finc_eval.embeddings.columns import metadata_table
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.recipe import Identity, recipe_of
from finc_eval.embeddings.writer import CacheWriter
from finc_eval.extractors.catalog import load_card
from finc_eval.gates.baseline import History
from finc_eval.gates.policy import Policy
from finc_eval.judges.scores import read_scores
from finc_eval.judges.strengths import Strengths
from finc_eval.judges.votes import read_votes
from finc_eval.leaderboards.entry import Entry
from finc_eval.leaderboards.reference import BoardReference
from finc_eval.measures.gaussians.gaussian import GaussianStatistics
from finc_eval.measures.gaussians.reference_statistics import read_statistics, write_statistics
from finc_eval.memorization import attacks
from finc_eval.private.synthesis.files import read_columns, read_images
from finc_eval.samples.clips import Clip
from finc_eval.samples.opening import open_source
from finc_eval.samples.source import Manifest
from finc_eval.samples.traits import Traits

N = 60


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        suffix: end of its name.
        make: writes a valid file.
        use: opens a file by the public door and uses it; what it returns must be the same for the same content.
        damage: damages the bytes of a file.
        sealed: whether a file that was damaged, and not forged, may never be taken for another content.
    """

    suffix: str
    make: Callable[[Path], object]
    use: Callable[[Path], object]
    damage: Callable[[bytes, np.random.Generator], bytes] = of_bytes
    sealed: bool = False


def numbers(n=N, d=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def sets():
    gen = numbers()
    gen[:20] += 4
    return gen, numbers(seed=1)


def pictures(n=8, edge=12):
    return np.random.default_rng(0).integers(0, 256, (n, edge, edge, 3), dtype=np.uint8)


# Files of embeddings


def make_cache(path):
    names = [f"{row}.png" for row in range(8)]
    fe.extract(
        pictures(),
        "pixels",
        path,
        metadata={"id": [str(row) for row in range(8)], "label": list("ababcabc"), "x y": names},
    ).close()


def use_cache(path):
    cache_folder.entry_of(path)
    problem = cache_folder.verify(path)
    with fe.EmbeddingCache(path) as cache:
        rows, some = cache[:], cache[[3, 1]]
        columns = {name: cache.column(name) for name in cache.columns}
        found = as_embeddings(cache)
        batches = sum(len(batch.rows) for batch in found.batches(3))
        content = cache.content.tolist()
        assert batches == len(rows) == cache.n and len(some) == 2
        assert problem is None, problem  # all that verify reads was read here, too
        return cache.key, rows.tobytes(), cache.ids, columns, content, cache.failures, repr(cache), cache.clip


@cache
def two_shards():
    """Embeddings of both shards of a set, in a folder that is gone when the process ends."""
    folder = tempfile.TemporaryDirectory()
    images = Path(folder.name) / "set.npz"
    np.savez(images, pictures())
    paths = [fe.extract(images, "pixels", images.with_suffix(".h5"), shard=f"{number}/2").path for number in (1, 2)]
    return folder, paths


def make_shard(path):
    shutil.copy(two_shards()[1][0], path)


def use_shard(path):
    """Merge: the other shard is as it was."""
    out = path.with_name("merged.h5")
    try:
        with fe.merge([path, two_shards()[1][1]], out) as cache:
            return cache.key, cache[:].tobytes(), cache.ids, cache.content.tolist(), cache.failures, repr(cache.profile)
    finally:
        out.unlink(missing_ok=True)


CARD = recipe_of(load_card("pixels"), "float32")
IDENTITY = Identity("/data/gen", Manifest("folder", N, "m" * 64, {}), "pixels", CARD)
IDS = [f"{row}.png" for row in range(N)]


def fill(writer, stop):
    rows = numbers()
    for start in range(writer.done, stop, 10):
        here = slice(start, start + 10)
        reasons = ["broken" if row == 7 else None for row in range(here.start, here.stop)]
        writer.write(
            rows[here],
            np.arange(here.start, here.stop, dtype=np.uint64),
            reasons,
            [Traits("PNG", "RGB", 9, 9, False)] * 10,
        )


def make_part(path):
    with CacheWriter(path.with_suffix(""), IDENTITY.key, IDS, {"embeddings": 6}, 10) as writer:
        fill(writer, 40)


def use_part(path):
    """Resume: whatever the damage, the whole cache is right."""
    whole = path.with_suffix("")
    cache_folder.entry_of(whole)
    with CacheWriter(whole, IDENTITY.key, IDS, {"embeddings": 6}, 10) as writer:
        fill(writer, N)
        writer.finish(IDENTITY)
    with fe.EmbeddingCache(whole) as cache:
        return cache[:].tobytes(), cache.ids, cache.content.tolist(), cache.failures


def use_array_file(path):
    found = as_embeddings(path)
    return sum(batch.rows.shape[0] for batch in found.batches(16)), found.ids_between(0, 3), found.columns


def make_safetensors(path):
    from safetensors.torch import save_file

    save_file({"embeddings": torch.from_numpy(numbers()), "labels": torch.arange(N)}, path)


def make_parquet(path):
    import pandas as pd

    frame = pd.DataFrame(numbers(), columns=[f"e{entry}" for entry in range(6)])
    frame.insert(0, "id", IDS)
    frame.to_parquet(path)


def make_images_in_parquet(path):
    import pandas as pd

    pd.DataFrame({"image": [png(pixels) for pixels in pictures()], "label": range(8)}).to_parquet(path)


def make_table(path):
    rows = [{"file_name": name, "label": str(row % 3), "n": row} for row, name in enumerate(IDS)]
    if path.suffix == ".csv":
        path.write_text(
            "file_name,label,n\n" + "".join(f"{row['file_name']},{row['label']},{row['n']}\n" for row in rows)
        )
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        import pandas as pd

        pd.DataFrame(rows).to_parquet(path)


# Results


def make_sketch(path):
    fe.Sketch.reference(fe.EmbeddingSet(sets()[1], ids=IDS, name="é"), features=15, sigma=2.0).save(path)


def use_sketch(path):
    sketch = fe.Sketch.load(path)
    if sketch.n > 20 and sketch.dim == 6:
        other = fe.Sketch.of(sets()[0], sketch)
        fe.compare(other, sketch, method=fe.Finc(clusters=False), modes=2).to_json()
    return (
        sketch.n,
        sketch.covariance.tolist(),
        sketch.sample.ids,
        sketch.sample.rows.tolist(),
        sketch.groups,
        sketch.squared_sizes,
    )


def make_comparison(path):
    fe.compare(*sets(), features=15, sigma=2.0, modes=2).save(path)
    path.with_suffix(".json").unlink()


def make_methods(path):
    images = np.random.default_rng(0).integers(0, 256, (N, 6, 6, 3), dtype=np.uint8)
    gen, ref = (fe.EmbeddingSet(rows, images=images) for rows in sets())
    fe.compare_methods(gen, ref, ["finc"], features=15, sigma=2.0, modes=2).showing(2).save(path)
    path.with_suffix(".json").unlink()


def use_pictured(path):
    found = fe.load(path)
    page = found.to_html(path.with_suffix(".html"))
    return found.to_json(), page.read_text()


def use_comparison(path):
    found = fe.load(path)
    assert isinstance(found, fe.Comparison)
    if found.feature_map.dim == 6:
        found.score(sets()[0])
    page = found.to_html(path.with_suffix(".html"))
    return found.to_json(), [mode.direction.tolist() for mode in found.directions], page.read_text()


def make_result(path):
    comparison = fe.compare(*sets(), features=15, sigma=2.0, modes=2)
    comparison.to_json(path)


def make_scores(path):
    fe.metrics(*sets(), ["fid", "mmd"]).to_json(path)


def make_audit(path):
    attacks.PERMUTATIONS = 9  # the file is the same, and made in a fifth of the time
    fe.audit(numbers(200), numbers(200, seed=1), numbers(200, seed=2), pairs=5).to_json(path)


def use_result(path):
    found = fe.load(path)
    found.to_html(path.with_suffix(".html"))
    return found.to_json(), repr(found)


def small_board(path):
    """A board of two models in a folder beside this path."""
    gen, ref = sets()
    board = fe.Board(path.with_suffix(".board"))
    board.add({"gen": gen, "other": ref[:40]}, ref, metrics=("kid",))
    return board


def made_part(path, name):
    shutil.copy(small_board(path).folder / name, path)
    shutil.rmtree(path.with_suffix(".board"))


def use_entry(path):
    entry = Entry.load(path)
    tallies = [run.tally.effective().members.tolist() for run in entry.runs]
    return entry.to_text(), tallies, [run.measures["kid"].estimate() is not None for run in entry.runs]


def use_reference(path):
    found = BoardReference.load(path)
    return str(found.signature), found.tally.members.tolist(), found.examples, found.settings, found.kinds.digest


def make_index(path):
    made_part(path, "board.json")


def use_index(path):
    board = path.with_suffix(".board")
    if not board.exists():
        small_board(path)
    shutil.copy(path, board / "board.json")
    return fe.Board(board).leaderboard().to_json()


def make_leaderboard(path):
    gen, ref = sets()
    fe.leaderboard({"gen": gen, "other": ref[:40]}, ref, metrics=("kid",)).to_json(path)


def make_evaluation(path):
    fe.evaluate(*sets(), features=15).to_json(path)


POLICY = {"kinds": {"lose": 0.5, "new": 0.02}, "metrics": {"kid": {"worse": 0.1, "most": 2.0}}}


def make_verdict(path):
    fe.gate(sets()[0], numbers(seed=2), sets()[1], POLICY).to_json(path)


def make_policy(path):
    path.write_text(
        'alpha = 0.05\nkinds.lose = 0.5\nkinds.new = 0.02\nkinds.min_share = "auto"\nmetrics.kid.worse = "noise"\n'
        '[slices.cats]\ncolumn = "label"\nonly = ["cat"]\nkinds.lose = 0.5\n'
    )


def use_policy(path):
    return Policy.of(path)


def make_bundle(path):
    history = History.open(path.with_suffix(".history"))
    gen, ref = sets()
    verdict = fe.gate(gen, history.folder, ref, POLICY, first=True)
    history.promote(verdict, gen, reason="the first")
    shutil.copy(history.folder / "0001" / "baseline.json", path)


def use_bundle(path):
    """A history one file of which was damaged."""
    folder = path.with_suffix(".history")
    shutil.copytree(path.parent.parent / "valid" / folder.name, folder)
    shutil.copy(path, folder / "0001" / "baseline.json")
    return History.open(folder).latest.checksum


def make_kinds(path):
    fe.kinds(dict(zip(("gen", "ref"), sets(), strict=True))).save(path)


def use_kinds(path):
    found = fe.load(path)
    assert not isinstance(found, fe.Comparison)
    if len(found.divided.tree.axes.origin) == 6:
        found.assign(sets()[0])
        found.count(dict(zip(("gen", "ref"), sets(), strict=True)))
    found.to_html(path.with_suffix(".html"))
    return found.to_json(), found.shares, found.difference


def make_monitor(path):
    monitor = fe.Monitor(fe.EmbeddingSet(sets()[0], images=[*pictures(N)]))
    monitor.update(1, fe.EmbeddingSet(sets()[1], images=[*pictures(N)]))
    monitor.save(path)


def use_monitor(path):
    monitor = fe.Monitor.load(path)
    if monitor.basis.dim == 6:
        monitor.update(max(monitor.steps, default=0) + 1, sets()[0])
    monitor.to_html(path.with_suffix(".html"))
    return monitor.alarms, monitor.history.scores.tobytes(), monitor.names, monitor.result.keep


def make_models(path):
    fe.kahm.save_models(path, fe.kahm.fit_classes(sets()[0], [0, "é"] * (N // 2)))


def use_models(path):
    models = fe.kahm.load_models(path)
    return models.classes, models.predict(sets()[1][:, :6]).tolist() if next(
        iter(models.models.values())
    ).dim == 6 else None


def make_answer(path):
    fe.kahm.federated.ask(path.parent, numbers(5))
    fe.kahm.federated.answer(path.parent, "a", fe.kahm.fit_classes(sets()[0], [0, "é"] * (N // 2)))


def use_answer(path):
    shutil.copy(path.parent.parent / "valid" / "queries.h5", path.parent)
    return fe.kahm.federated.gather(path.parent, ["a"]).values.tolist()


# Privacy


def make_private(path):
    transform = fe.privacy.PublicTransform.fit(numbers(seed=3), 3)
    fe.privacy.release_sketch(
        sets()[1], public=transform, epsilon=3, ledger=None, classes=("0", "1"), labels=["0", "1"] * 30
    ).save(path)


def use_private(path):
    sketch = fe.privacy.PrivateSketch.load(path)
    score = (
        sketch.score(sets()[0], ["0", "1"] * 30) if sketch.transform.dim == 6 and sketch.classes == ("0", "1") else None
    )
    return sketch.signature, sketch.mean.tolist(), sketch.guarantees, score and score.value


SPENT = 0.3


def make_ledger(path):
    ledger = fe.privacy.Ledger.create(path, epsilon=3, delta=1e-5)
    for number in range(3):
        guarantee, views = fe.privacy.Guarantee.of(SPENT, 1e-5), [np.arange(number * N, dtype=np.uint64)] * number
        ledger.spend([f"digest {number}"], guarantee, f"release {number}", "ward 7", views)


def use_ledger(path):
    """Damage may not give a budget back."""
    ledger = fe.privacy.Ledger(path)
    assert ledger.budget == fe.privacy.Guarantee.of(3, 1e-5)
    spent = ledger.spent(["ward 7"])
    assert spent >= 3**0.5 * fe.privacy.Guarantee.of(SPENT, 1e-5).mu * (1 - 1e-9)
    ledger.accounts()
    ledger.spend(["ward 8"], fe.privacy.Guarantee.of(SPENT, 1e-5), "more")
    return spent


TABLE = {
    "label": "ill",
    "columns": [
        {"name": "age", "low": 18, "high": 95, "levels": 7, "integer": True, "usual": 40},
        {"name": "weight", "edges": [0, 50.5, 80, 200]},
        {"name": "smokes", "values": ["no", "yes"]},
        {"name": "ill", "values": ["no", "yes"], "usual": "no"},
    ],
}
PEOPLE = {
    "age": np.arange(18, 78),
    "weight": np.linspace(40, 120, N),
    "smokes": np.array(["no", "yes"] * 30),
    "ill": np.array(["no"] * N),
}


def make_description(path):
    if path.suffix == ".json":
        path.write_text(json.dumps(TABLE))
        return
    columns = "".join(
        "[[columns]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in column.items())
        for column in TABLE["columns"]
    )
    path.write_text('label = "ill"\n' + columns)


def use_description(path):
    table = fe.privacy.Table.load(path)
    records, labels = table.encoded(PEOPLE)
    table.decoded(records, labels, 0)
    return table.levels


def make_people(path):
    if path.suffix == ".npz":
        np.savez(path, **PEOPLE)
    else:
        lines = zip(*(column.tolist() for column in PEOPLE.values()), strict=True)
        path.write_text(",".join(PEOPLE) + "\n" + "".join(",".join(map(str, line)) + "\n" for line in lines))


def use_people(path):
    return {name: column.shape for name, column in read_columns(path).items()}


def use_private_images(path):
    images, labels = read_images(path)
    return images.shape, None if labels is None else labels.shape


# Settings and cards


def make_settings(path):
    path.write_text(
        '[compare]\nrho = 1.5\nmodes = 7\nsigma = 2.0\nmethod = {name = "finc", clusters = false}\ngroups = "video"\n'
    )


def use_settings(path):
    return fe.Settings.read(path, "compare")


def make_card(path):
    path.write_text((Path(__file__).parents[2] / "extractors" / "dinov2-vits14.toml").read_text())


# Samples


def png(pixels, form="PNG"):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form)
    return file.getvalue()


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


def write_gaussian(path):
    rows = torch.from_numpy(numbers()).double()
    write_statistics(path, GaussianStatistics(N, rows.mean(0), rows.T.cov(), "x", "pixels@1234"))


def use_statistics(path):
    return repr(read_statistics(path).covariance)


def use_foreign_statistics(path):
    found = read_statistics(path)
    return fe.metrics(sets()[0], path, ["fd"])["fd"].value if found.dim == 6 else None


KINDS = {
    "cache": Kind(".h5", make_cache, use_cache, of_own, True),
    "shard": Kind(".h5", make_shard, use_shard, of_own, True),
    "part": Kind(".h5.part", make_part, use_part, of_bytes, True),
    "sketch": Kind(".h5", make_sketch, use_sketch, of_own, True),
    "comparison": Kind(".h5", make_comparison, use_comparison, of_own, True),
    "methods": Kind(".h5", make_methods, use_pictured, of_own, True),
    "kinds": Kind(".h5", make_kinds, use_kinds, of_own, True),
    "monitor": Kind(".h5", make_monitor, use_monitor, of_own, True),
    "board entry": Kind(".json", lambda path: made_part(path, "entries/gen.json"), use_entry, of_text, True),
    "board reference": Kind(".h5", lambda path: made_part(path, "reference.h5"), use_reference, of_own, True),
    "private sketch": Kind(".h5", make_private, use_private, of_own, True),
    "models": Kind(".h5", make_models, use_models, of_own, True),
    "answer": Kind(".distances.h5", make_answer, use_answer, of_own, True),
    "result JSON": Kind(".json", make_result, use_result, of_text, True),
    "scores JSON": Kind(".json", make_scores, use_result, of_text, True),
    "audit JSON": Kind(".json", make_audit, use_result, of_text, True),
    "leaderboard JSON": Kind(".json", make_leaderboard, use_result, of_text, True),
    "evaluation JSON": Kind(".json", make_evaluation, use_result, of_text, True),
    "verdict JSON": Kind(".json", make_verdict, use_result, of_text, True),
    "board index": Kind(".json", make_index, use_index, of_text, True),
    "baseline": Kind(".json", make_bundle, use_bundle, of_text, True),
    "policy": Kind(".toml", make_policy, use_policy, of_text),
    "ledger": Kind(".jsonl", make_ledger, use_ledger, of_text, True),
    "table TOML": Kind(".toml", make_description, use_description, of_text),
    "table JSON": Kind(".json", make_description, use_description, of_text),
    "settings": Kind(".toml", make_settings, use_settings, of_text),
    "card": Kind(".toml", make_card, load_card, of_text),
    "votes CSV": Kind(".csv", make_votes, use_votes, of_text),
    "scores JSONL": Kind(".jsonl", make_judged, use_judged, of_text),
    "VBench JSON": Kind(".json", make_judged, use_judged, of_text),
    "people CSV": Kind(".csv", make_people, use_people, of_text),
    "people npz": Kind(".npz", make_people, use_people, of_zip),
    "private npz": Kind(".npz", make_images, use_private_images, of_zip),
    "images npz": Kind(".npz", make_images, use_samples, of_zip),
    "clips npz": Kind(".npz", make_clips, lambda path: use_samples(path, CLIP), of_zip),
    "images zip": Kind(".zip", make_zip, use_samples, of_zip),
    "StyleGAN zip": Kind(".zip", make_zip_of_stylegan, use_samples, of_zip),
    "images tar": Kind(".tar", make_tar, use_tar, of_tar),
    "PNG": Kind(".png", make_image, lambda path: use_samples(path.parent)),
    "PNG, right checksums": Kind(".png", make_image, lambda path: use_samples(path.parent), of_png),
    "GIF": Kind(".gif", make_image, lambda path: use_samples(path.parent)),
    "BMP": Kind(".bmp", make_image, lambda path: use_samples(path.parent)),
    "TIFF": Kind(".tiff", make_image, lambda path: use_samples(path.parent)),
    "JPEG": Kind(".jpg", make_image, lambda path: use_samples(path.parent)),
    "WebP": Kind(".webp", make_image, lambda path: use_samples(path.parent)),
    "MP4": Kind(".mp4", make_video, use_video),
    "animated WebP": Kind(".webp", make_animation, use_video),
    "APNG": Kind(".png", make_animation, use_video),
    "AVI": Kind(".avi", make_video, use_video),
    "npy": Kind(".npy", lambda path: np.save(path, numbers()), use_array_file, of_npy),
    "embeddings npz": Kind(
        ".npz",
        lambda path: np.savez(path, embeddings=numbers(), ids=np.array(IDS), label=np.arange(N)),
        use_array_file,
        of_zip,
    ),
    "pt": Kind(
        ".pt", lambda path: torch.save({"embeddings": torch.from_numpy(numbers())}, path), use_array_file, of_zip
    ),
    "safetensors": Kind(".safetensors", make_safetensors, use_array_file, of_text),
    "parquet": Kind(".parquet", make_parquet, use_array_file),
    "statistics": Kind(".npz", write_gaussian, use_statistics, of_zip, True),
    "FID npz": Kind(
        ".npz", lambda path: np.savez(path, mu=np.zeros(6), sigma=np.eye(6)), use_foreign_statistics, of_zip
    ),
    "images npy": Kind(".npy", lambda path: np.save(path, pictures()), use_samples, of_npy),
    "images pt": Kind(".pt", lambda path: torch.save(torch.from_numpy(pictures()), path), use_samples, of_zip),
    "images parquet": Kind(".parquet", make_images_in_parquet, use_samples),
    "metadata CSV": Kind(".csv", make_table, lambda path: metadata_table(path, IDS), of_text),
    "metadata JSONL": Kind(".jsonl", make_table, lambda path: metadata_table(path, IDS), of_text),
    "metadata parquet": Kind(".parquet", make_table, lambda path: metadata_table(path, IDS)),
}


def quietly(use, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return use(path)
