"""Every verb that writes, as a command on small sets, in a folder that has all that it needs."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _releases import release
from faults.files_of_privacy import make_description, make_people
from PIL import Image


@dataclass(frozen=True)
class Verb:
    """A command.

    Attributes:
        words: its words after `finc-eval`.
        code: its exit code.
        once: whether its result, where it is there already, is kept or refuses it.
        ledger: file that gets a line whenever it is run, also where it is killed after it has spent.
    """

    words: str
    code: int = 0
    once: bool = False
    ledger: str | None = None


SETS = "--gen gen.npy --ref ref.npy"
PICTURES = "--extractor pixels --batch-size 4"
OUT = "--quiet --out out"
RELEASE = "private sketch release --data ref.npy --public gen.npy --dims 3 --epsilon 1 --quiet"
GATE = f"gate --gen new.npy --ref ref.npy --policy gate.toml {OUT}"

PREPARED = (
    f"extract gen {PICTURES} --shard 1/2 --out shard.h5 --quiet",
    f"extract gen {PICTURES} --shard 2/2 --out shard.h5 --quiet",
    "compare --gen gen.npy --ref ref.npy --features 30 --out old --quiet",
    "compare --gen new.npy --ref ref.npy --features 30 --kinds old/comparison.h5 --out later --quiet",
    "compare --gen gen.npy --ref ref.npy --features 30 --seed 7 --out again --quiet",
    "leaderboard add board one=gen.npy two=new.npy --ref ref.npy --metrics kid --quiet",
    "gate --first --gen gen.npy --baseline history --ref ref.npy --policy gate.toml --out first --quiet",
    "kahm fit labeled.npz --out models.h5 --quiet",
    "private sketch release --data ref.npy --public gen.npy --dims 3 --epsilon 1 --ledger made --budget 3 --out p.h5",
    "private sketch release --data new.npy --feature-map-of p.h5 --epsilon 1 --ledger made --out q.h5",
    f"extract ref {PICTURES} --quiet",
)
"""Commands whose results other commands take."""

VERBS = {
    "extract": Verb(f"extract gen {PICTURES} --out gen.h5 --quiet"),
    "extract to the cache": Verb(f"extract gen {PICTURES} --quiet"),
    "extract --shard": Verb(f"extract gen {PICTURES} --shard 2/3 --out gen.h5 --quiet"),
    "extract --metadata": Verb(f"extract ref {PICTURES} --metadata table.csv --out ref.h5 --quiet"),
    "merge": Verb("extract merge shard.1-of-2.h5 shard.2-of-2.h5 --out gen.h5"),
    "sketch": Verb("extract sketch ref.npy --features 30 --out sketch.h5 --quiet"),
    "compare": Verb(f"compare {SETS} --features 30 {OUT}"),
    "compare over an older result": Verb(f"compare {SETS} --features 30 --out again --force --quiet"),
    "compare pictures": Verb(f"compare --gen gen --ref ref --features 30 {PICTURES} {OUT}"),
    "kinds": Verb(f"compare kinds {SETS} {OUT}"),
    "monitor": Verb("monitor step-1.npy step-2.npy --ref ref.npy --quiet --out page.html"),
    "sweep": Verb(f"compare sweep {SETS} --parameter rho --values 1,2 --features 30 {OUT}"),
    "methods": Verb(f"compare methods {SETS} --methods finc,ken --features 30 {OUT}"),
    "changes": Verb("compare changes --old old/comparison.h5 --new later/comparison.h5 --out out"),
    "score": Verb("compare score new.npy --comparison old/comparison.h5 --out scores.csv --quiet"),
    "metrics": Verb(f"metrics {SETS} --metrics fd,kid {OUT}"),
    "evaluate": Verb(f"evaluate {SETS} --features 30 {OUT}"),
    "report": Verb("report old/comparison.h5 --out page.html"),
    "report of a folder": Verb("report old"),
    "audit": Verb(f"audit --gen gen.npy --train ref.npy --holdout new.npy {OUT}"),
    "gate": Verb(f"{GATE} --baseline gen.npy"),
    "gate --init": Verb("gate --init --baseline gen.npy --ref ref.npy --policy new.toml --quiet"),
    "gate --first": Verb(f"{GATE} --baseline releases --first", once=True),
    "gate --promote": Verb(f"{GATE} --baseline history --promote", once=True),
    "leaderboard": Verb(f"leaderboard one=gen.npy two=new.npy --ref ref.npy --metrics kid {OUT}"),
    "leaderboard add, first": Verb("leaderboard add fresh one=gen.npy --ref ref.npy --metrics kid --quiet", once=True),
    "leaderboard add": Verb("leaderboard add board three=ref.npy --ref ref.npy --quiet", once=True),
    "leaderboard remove": Verb("leaderboard remove board two", once=True),
    "leaderboard render": Verb("leaderboard render board"),
    "leaderboard vote": Verb("leaderboard vote one=gen two=ref --out vote.html"),
    "kahm fit": Verb("kahm fit labeled.npz --out new.h5 --report page --quiet"),
    "kahm classify": Verb("kahm classify labeled.npz --models models.h5 --out classes.csv --report page --quiet"),
    "kahm fabricate": Verb(
        "kahm fabricate labeled.npz --epsilon 8 --bounds -9,9 --out made.npz --report page --quiet", once=True
    ),
    "kahm membership": Verb(f"kahm membership --models models.h5 --members labeled.npz --others new.npy {OUT}"),
    "kahm federate": Verb("kahm federate labeled.npz --party a=models.h5 --out classes.csv --report page --quiet"),
    "private sketch release": Verb(f"{RELEASE} --ledger book --budget 9 --out r.h5", once=True, ledger="book"),
    "private sketch score": Verb(f"private sketch score --gen gen.npy --ref p.h5 {OUT}"),
    "private sketch compare": Verb(f"private sketch compare --gen a=gen.npy --gen b=new.npy --ref p.h5 {OUT}"),
    "private sketch merge": Verb("private sketch merge p.h5 q.h5 --out both.h5"),
    "dp-generate": Verb(
        "private generate --data people.csv --table table.toml --epsilon 1 --ledger book --budget 9 --out made.csv "
        "--steps 3 --quiet",
        once=True,
        ledger="book",
    ),
    "private utility": Verb(f"private utility --data people.csv --gen people.csv --table table.toml {OUT}"),
    "extract cache rm": Verb("extract cache rm --all"),
    "demo": Verb("demo --quiet"),
}
"""Commands by name. All of them write into the folder in which they run."""

AT_EACH_CHANGE = (
    "leaderboard add, first",
    "leaderboard add",
    "leaderboard remove",
    "leaderboard render",
    "gate --first",
    "gate --promote",
    "private sketch release",
    "dp-generate",
)
"""Names of commands that change a board, a history or a ledger, and are killed before each change of a file."""

RIVALS = tuple(f"{RELEASE.replace('ref', name)} --ledger book --budget 1 --out {name}.h5" for name in ("ref", "near"))
"""Releases of a set and of a near copy of it, which want all of one budget."""

SLOW = ("demo",)
"""Names of commands that run for half a minute."""


def make_inputs(folder: Path) -> None:
    """Write the sets that the commands begin with."""
    for seed, name in enumerate(("gen", "new", "ref")):
        rows = release(120, seed)
        np.save(folder / f"{name}.npy", rows)
        (folder / name).mkdir()
        pictures = np.random.default_rng(seed).integers(0, 256, (24, 8, 8, 3), dtype=np.uint8)
        for number, pixels in enumerate(pictures):
            Image.fromarray(pixels).save(folder / name / f"{number:02}.png")
    for step in (1, 2):
        np.save(folder / f"step-{step}.npy", release(40, step))
    np.save(folder / "near.npy", np.concatenate([rows[1:] + np.float32(1e-6), rows[:3]]))
    np.savez(folder / "labeled.npz", embeddings=release(60, 3), labels=np.arange(60) % 2)
    lines = "".join(f"{number:02}.png,{number % 3}\n" for number in range(24))
    (folder / "table.csv").write_text(f"file_name,label\n{lines}")
    (folder / "gate.toml").write_text("kinds.moved = 0.9\nmetrics.kid.most = 100\n")
    make_description(folder / "table.toml")
    make_people(folder / "people.csv")
