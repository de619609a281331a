"""Commands that newcomers type, good and careless, with their exit code, their sentence, and the files they write."""

import shlex
from dataclasses import dataclass

COMPARISON = ("comparison.h5", "comparison.html", "comparison.json")
VERDICT = ("verdict.html", "verdict.json", "verdict.md", "verdict.xml")


def board_of(*models):
    return ("board.json", "reference.h5", *RANKED, *(f"entries/{one}.json" for one in models))


RANKED = ("leaderboard.html", "leaderboard.json")
KINDS = ("kinds.h5", "kinds.html", "kinds.json")


@dataclass(frozen=True)
class Command:
    """A command of the table.

    Attributes:
        line: the command, without the program.
        says: a part of its sentence, or of its output where it is done.
        writes: files that it makes or replaces; all others stay as they are.
        code: its exit code.
        folder: folder in which it is called.
    """

    line: str
    says: str = ""
    writes: tuple[str, ...] = ()
    code: int = 0
    folder: str = "."

    @property
    def words(self):
        return shlex.split(self.line)


def done(line, says="", writes=(), folder="."):
    return Command(line, says, tuple(writes), folder=folder)


def refused(line, says, writes=(), folder="."):
    return Command(line, says, tuple(writes), code=3, folder=folder)


def within(folder, names):
    return [f"{folder}/{name}" for name in names]


SMALL = "--features 40"
OF_TINY = "gen-vs-ref-extractor-tiny-features"  # folder of a comparison by the card, and so many features
SETS = "--gen gen.h5 --ref ref.h5"
FOLDERS = "--gen gen --ref ref"
TINY = "--extractor tiny.toml"
RELEASE = "--baseline other.h5 --ref ref.h5"

FIRST_WORDS = [
    done("", "Usage: "),
    done("-h", "Rank and gate"),
    done("--help", "Rank and gate"),
    done("--version", "finc-eval "),
    done("extract cache", "Usage: "),
    done("private sketch -h", "Usage: "),
    done("compare -h", "--extractor"),
    done("extract --help-all", "--workers"),
    done("metrics --help-all", "--batch-size"),
    refused("compar", "No such command 'compar'"),
    refused("compare", "Missing option '--gen'"),
    refused("compare --gen gen", "Missing option '--ref'"),
    refused("compare gen", "two sets are compared, got gen: write generated/ real/"),
    refused("compare gen ref other", "two sets are compared, got gen ref other"),
    refused("compare gen --ref ref", "two sets are compared, got gen"),
    refused("compare --generated gen --ref ref", "No such option"),
    refused("extract", "Missing argument"),
    refused("score", "Missing argument"),
    refused("compare kinds", "at least two sets are needed"),
    refused("doctor schema comparisons", 'did you mean "comparison"?'),
    done("doctor schema", "comparison"),
    done("doctor schema kinds", '"properties"'),
    done("doctor", "torch"),
    done("doctor --json", '"versions"'),
]

EXTRACT = [
    done(f"extract gen {TINY} --out new.h5", "120 embeddings of dimension 192 by tiny", ["new.h5"]),
    done(f"extract gen {TINY} --out new.h5 --json --quiet", '"n": 120', ["new.h5"]),
    done(f"extract gen {TINY}", "120 embeddings"),
    done(f"extract gen {TINY} --n 50 --seed 3 --out new.h5", "50 embeddings", ["new.h5"]),
    done(f"extract gen.zip {TINY} --out new.h5", "120 embeddings", ["new.h5"]),
    done(f"extract images.npz {TINY} --out new.h5", "120 embeddings", ["new.h5"]),
    done(f"extract shard-0000.tar {TINY} --out new.h5", "120 embeddings", ["new.h5"]),
    done(f"extract 'shard-{{0000..0000}}.tar' {TINY} --out new.h5", "120 embeddings", ["new.h5"]),
    done(f"extract mixed {TINY} --out new.h5", "unreadable: broken.png", ["new.h5"]),
    done(f"extract gen {TINY} --metadata table.csv --out new.h5", "metadata: kind", ["new.h5"]),
    done(f"extract gen {TINY} --batch-size 7 --workers 1 --device cpu --out new.h5", "120 embeddings", ["new.h5"]),
    done(f"extract loop {TINY} --out new.h5", "1 embedding", ["new.h5"]),
    done(f"extract gen {TINY} --out gen.h5", "120 embeddings"),
    refused(f"extract mixed {TINY} --strict --out new.h5", "broken.png", ["new.h5.part"]),
    refused(f"extract gone {TINY}", "gone does not exist"),
    refused(f"extract gne {TINY}", "did you mean gen?"),
    refused(f"extract empty {TINY}", "empty"),
    refused(f"extract texts {TINY}", "texts"),
    refused(f"extract unreadable {TINY}", "a.png"),
    refused(f"extract text {TINY}", "text is not a set of samples"),
    refused(f"extract damaged.zip {TINY}", "damaged.zip"),
    refused(f"extract damaged.npz {TINY}", "damaged.npz"),
    refused(f"extract gen/000.png {TINY}", "is a single image"),
    refused(f"extract ref {TINY} --out gen.h5", "which would be lost"),
    refused(f"extract gen {TINY} --n 50 --out gen.h5", "which would be lost"),
    refused(f"extract gen {TINY} --out own/notes.h5", "already exists and is not a finc-eval embedding cache"),
    refused(f"extract gen {TINY} --out gen", "--out must end in .h5, got gen: pass gen.h5 for example"),
    refused(f"extract gen {TINY} --out new.npz", "--out must end in .h5"),
    refused(f"extract gen {TINY} --n 1000 --out new.h5", "n is 1000"),
    refused(f"extract gen {TINY} --n 0 --out new.h5", "n must be a whole number"),
    refused(f"extract gen {TINY} --n many --out new.h5", "--n"),
    refused(f"extract gen {TINY} --device gpu --out new.h5", 'the device "gpu" cannot be used'),
    refused(f"extract gen {TINY} --device cuda:9 --out new.h5", 'the device "cuda:9" cannot be used'),
    refused(f"extract gen {TINY} --batch-size 0 --out new.h5", "batch_size must be a whole number"),
    refused(f"extract gen {TINY} --workers 0 --out new.h5", "workers must be a whole number"),
    refused(f"extract gen {TINY} --precision half --out new.h5", "'half' is not one of"),
    refused(f"extract gen {TINY} --metadata gone.csv --out new.h5", "gone.csv does not exist"),
    refused(f"extract gen {TINY} --metadata nameless.csv --out new.h5", "nameless.csv"),
    refused("extract gen --extractor pixel --out new.h5", 'did you mean "pixels"?'),
    refused("extract gen --extractor dino --out new.h5", "dinov2-vit"),
    refused("extract gen --extractor card.toml --out new.h5", "card.toml"),
    refused("extract gen --extractor gone.toml --out new.h5", "gone.toml"),
    refused("extract gen --extractor dinov2-vits14 --out new.h5", "doctor weights fetch dinov2-vits14"),
]

COMPARE = [
    done(f"compare {FOLDERS} {TINY} {SMALL} --out o", "The sets differ", within("o", COMPARISON)),
    done(f"compare {FOLDERS} {TINY} {SMALL}", f"reports/{OF_TINY}40", within(f"reports/{OF_TINY}40", COMPARISON)),
    done(f"compare {SETS} {SMALL} --out o --json --quiet", '"type": "comparison"', within("o", COMPARISON)),
    done(f"compare --gen gen --ref ref.h5 {TINY} {SMALL} --out o", "", within("o", COMPARISON)),
    done(f"compare --gen gen --ref ref.sketch.h5 {TINY} --out o", "", within("o", COMPARISON)),
    done(f"compare --gen x.npy --ref y.npy {SMALL} --out o", "", within("o", COMPARISON)),
    done(f"compare --gen x.npz --ref x.pt {SMALL} --out o", "", within("o", COMPARISON)),
    done(f"compare --gen images.npz --ref ref {TINY} --n 60 {SMALL} --out o", "", within("o", COMPARISON)),
    done(f"compare gen.h5 ref.h5 {SMALL} --out o", "", within("o", COMPARISON)),
    done(f"gen.h5 {SMALL} ref.h5 --out o", "", within("o", COMPARISON)),
    done(f"compare {SETS} {SMALL} --method rarity --novel 0.4 --out o", "", within("o", COMPARISON)),
    done(f"compare {SETS} {SMALL} --batch-size 50 --device cpu --out o", "", within("o", COMPARISON)),
    done(f"compare {SETS} {SMALL} --out o --config finc.toml", "", within("o", COMPARISON)),
    done(
        "compare --gen ../gen --ref ../ref",
        f"reports/{OF_TINY}30",
        within(f"configured/reports/{OF_TINY}30", COMPARISON),
        folder="configured",
    ),
    done(f"compare {SETS} {SMALL} --out own --force", "", within("own", COMPARISON)),
    refused(f"compare {SETS} --out own", "own/comparison.html exists, and this command with these inputs did not make"),
    refused(f"compare {SETS} --out gen.h5", "--out is the folder of several files, got gen.h5"),
    refused(f"compare {SETS} --out new.html", "--out is the folder of several files, got new.html: pass new for"),
    refused(f"compare {SETS} --out text", "text is a file, and --out is a folder"),
    refused("compare --gen gone --ref ref", "gone does not exist"),
    refused("compare --gen gen.h5 --ref gone.h5 --out o", "gone.h5 does not exist"),
    refused(f"compare --gen empty --ref ref {TINY} --out o", "empty"),
    refused(f"compare --gen unreadable --ref ref {TINY} --out o", "anything with confidence; not samples: 1 x .txt"),
    refused(f"compare --gen loop --ref ref {TINY} --out o", "gen has 1 sample: a comparison needs"),
    refused("compare --gen gen.h5 --ref damaged.h5 --out o", "damaged.h5"),
    refused("compare --gen gen.h5 --ref not.h5 --out o", "not.h5"),
    refused("compare --gen gen.h5 --ref own/notes.h5 --out o", "own/notes.h5"),
    refused("compare --gen x.npy --ref pickle.pt --out o", "pickle.pt"),
    refused("compare --gen x.npy --ref flat.npy --out o", "flat.npy"),
    refused("compare --gen x.npy --ref nan.npy --out o", "row 7"),
    refused("compare --gen x.npy --ref narrow.npy --out o", "784"),
    refused("compare --gen x.npy --ref few.npy --out o", "ref has 5 samples"),
    refused("compare --gen x.npy --ref ref.h5 --out o", "784"),
    refused("compare --gen gen --ref ref.h5 --out o", "made with a card of your own, tiny"),
    refused("compare --gen gen.h5 --ref ward.sketch.h5 --out o", "ward.sketch.h5 is a private sketch, which"),
    refused(
        "compare --gen gen.h5 --ref results/gen/comparison.h5 --out o",
        "results/gen/comparison.h5 is a comparison, which",
    ),
    refused("compare --gen x.npy --ref text --out o", "text is not a set of samples"),
    refused(f"compare {SETS} --n 50 --out o", "is embedded already"),
    refused(f"compare {SETS} --rho -1 --out o", "rho must be a positive number, got -1.0"),
    refused(f"compare {SETS} --features 0 --out o", "features must be a whole number of at least 1, got 0"),
    refused(f"compare {SETS} --features lots --out o", "'lots' is not a whole number or auto"),
    refused(f"compare {SETS} --sigma 0 --out o", "sigma must be a positive number"),
    refused(f"compare {SETS} --kernel cosin --out o", "'cosin' is not one of 'gaussian', 'cosine'"),
    refused(f"compare {SETS} --kernel cosine --sigma 3 --out o", "has no bandwidth"),
    refused(f"compare {SETS} --precision float23 --out o", "'float23' is not one of 'float32', 'float64'"),
    refused(f"compare {SETS} --method fnc --out o", "'fnc' is not one of 'finc', 'clusters', 'ken', 'rarity', 'fld'"),
    refused(f"compare {SETS} --method ken --no-rotation --out o", "belongs to finc, not to ken"),
    refused(f"compare {SETS} --novel 0.2 --out o", "--novel belongs to rarity and fld, not to finc"),
    refused(f"compare {SETS} --groups prompt --out o", "has the column 'prompt'"),
    refused(f"compare {SETS} --device cuda --out o", 'the device "cuda" cannot be used'),
    refused(f"compare {SETS} --config gone.toml", "gone.toml does not exist"),
    refused(f"compare {SETS} --config typo.toml", 'unknown key "featurs" (did you mean "features"?)'),
    refused(f"compare {SETS} --config typo-table.toml", 'unknown table [compar] (did you mean "compare"?)'),
    refused(f"compare {SETS} --config no.toml", "no.toml cannot be read as a TOML file"),
    refused(f"compare {SETS} --config type.toml", '"workers" must be a whole number'),
]

STEPS = [
    done(f"extract sketch ref.h5 --out new.sketch.h5 {SMALL}", "sketch of 120 samples", ["new.sketch.h5"]),
    done(f"extract sketch ref --out new.sketch.h5 {TINY} {SMALL} --json", '"n": 120', ["new.sketch.h5"]),
    done("extract sketch gen.h5 --out new.sketch.h5 --feature-map-of ref.sketch.h5", "120", ["new.sketch.h5"]),
    refused("extract sketch gen.h5 --out ref.h5", "did not make it"),
    refused("extract sketch gen.h5 --out new.sketch.h5 --feature-map-of ref.sketch.h5 --seed 1", "leave --seed out"),
    refused("extract sketch gen.h5 --out new.json", "--out must end in .h5"),
    refused("extract sketch text --out s.h5", "text is not a set of samples"),
    refused("extract sketch x.npy --out new.h5 --feature-map-of ref.sketch.h5", "784"),
    done(f"score other {TINY} --comparison results/gen/comparison.h5 --out s.csv", "Kinds of", ["s.csv"]),
    done("compare score other.h5 --comparison results/gen/comparison.h5 --out s.csv --json", '"kinds"', ["s.csv"]),
    refused(f"score other {TINY} --comparison results/gen/comparison.h5 --out own/notes.csv", "did not make it"),
    refused("score other --comparison gen.h5 --out s.csv", "gen.h5 is a file of embeddings, which"),
    refused("score x.npy --comparison results/gen/comparison.h5 --out s.csv", "784"),
    refused("score other --comparison results/gen/comparison.h5 --out s.txt", "--out must end in .csv"),
    refused("score other --comparison text --out s.csv", "text was not written by finc-eval"),
    refused("score gone --comparison text --out s.csv", "gone does not exist"),
    done("report results/gen/comparison.h5", "comparison.html", ["results/gen/comparison.html"]),
    done("report results/gen/comparison.h5 --out page.html --json", "page.html", ["page.html"]),
    done("report results/gen/comparison.h5 --samples gen=gen --out page.html", "page.html", ["page.html"]),
    refused("report results/gen/comparison.h5 --out own/notes.html", "did not make it"),
    refused("report results/gen/comparison.h5 --out gen.h5", "--out must end in .html"),
    refused("report results/gen/comparison.h5 --samples gen=gone", "gone does not exist"),
    done("report results/gen/comparison.h5 --format md", "comparison.md", ["results/gen/comparison.md"]),
    done("report results", "index.html", ["results/index.html"]),
    refused("report gen.h5 --out page.html", "gen.h5 is a file of embeddings, which"),
    refused("report gone.h5", "gone.h5 does not exist"),
    done(
        f"compare --gen other.h5 --ref ref.h5 {SMALL} --kinds results/gen/comparison.h5 --out o",
        "",
        within("o", ("comparison.h5", "comparison.html", "comparison.json")),
    ),
    done(
        "compare changes --old results/gen/comparison.h5 --new later/comparison.h5 --out o",
        "",
        within("o", ("changes.h5", "changes.html", "changes.json")),
    ),
    refused(
        "compare changes --old results/gen/comparison.h5 --new results/other/comparison.h5 --out o",
        "the comparisons have unlike kinds: make the later by the kinds of the earlier",
    ),
    refused("compare changes --old results/gen/comparison.h5 --new gen.h5 --out o", "gen.h5"),
    refused("compare changes --old gone.h5 --new text", "gone.h5 does not exist"),
    refused("compare changes --old text --new text", "text was not written by finc-eval"),
    refused("compare kinds --gen a=gen.h5 --gen b=gone.h5 --out o", "gone.h5"),
    refused("compare kinds --gen a=gen.h5 --gen a=other.h5 --out o", "two models are called 'a'"),
    refused("compare kinds --gen ref=gen.h5 --ref ref.h5 --out o", 'a model cannot be called "ref"'),
    refused("compare kinds --gen a= --gen b=other.h5 --out o", "is not of the form NAME=PATH"),
    done("compare kinds one=gen.h5 two=other.h5 --ref ref.h5 --out o", "", within("o", KINDS)),
    refused("models --gen a=gen.h5 --gen b=other.h5", "No such command 'models'"),
    done(
        "leaderboard add board --ref ref.h5 a=gen.h5 b=other.h5",
        "added a, b to board",
        within("board", ("board.json", "reference.h5", "entries/a.json", "entries/b.json", *RANKED)),
    ),
    refused("leaderboard add board --ref ref.h5", "no model was given to add"),
    refused("leaderboard add board --ref ref.h5 a=gone.h5", "gone.h5"),
    refused("leaderboard add", "Missing argument 'BOARD'"),
    refused("leaderboard show nowhere", "nowhere does not exist"),
    refused("leaderboard render gen", "gen is not a stored board: pass the folder of a board"),
    refused("leaderboard shwo gen", "no command is called 'shwo' (did you mean \"show\"?)"),
    refused("leaderboard remove board a", "board is not a stored board"),
    done("compare kinds --gen gen.h5 --ref ref.h5 --out o", "", within("o", KINDS)),
    done("compare kinds --gen a=gen.h5 --gen b=other.h5 --seed 1 --out o", "", within("o", KINDS)),
    refused("compare kinds --gen gen.h5 --out o", "at least two sets are needed"),
    refused("compare kinds --gen gen.h5 --ref ref.h5 --levels 5,10 --out o", "No such option: --levels"),
    done(
        f"compare sweep {SETS} --parameter rho --values 1,2 {SMALL} --out o",
        "",
        within("o", ("sweep-rho.h5", "sweep-rho.html", "sweep-rho.json")),
    ),
    refused(f"compare sweep {SETS} --parameter tau", "'tau' is not one of 'sigma', 'rho'"),
    refused(f"compare sweep {SETS} --parameter rho --rho 2", "a sweep of rho does not use --rho: leave it out"),
    refused(f"compare sweep {SETS} --parameter sigma --sigma 2", "does not use --sigma: leave it out"),
    refused(f"compare sweep {SETS} --parameter rho --values x", "'x' is not a list of numbers, such as 1,2,5"),
    refused(f"compare sweep {SETS} --parameter rho --values 1,-2", "--values must be a positive number, got -2"),
    refused("compare sweep --gen gone.h5 --ref ref --parameter rho", "gone.h5"),
    refused(f"compare sweep {SETS} --parameter rho --out s.json", "got s.json: pass s for example"),
    done(
        f"compare methods {SETS} --methods finc,rarity {SMALL} --out o",
        "",
        within("o", ("methods.h5", "methods.html", "methods.json")),
    ),
    refused(f"compare methods {SETS} --methods finc,kem", 'did you mean "ken"?'),
    refused(f"compare methods {SETS} --methods finc,finc", "method 'finc' is named twice"),
    refused(f"compare methods {SETS} --methods ''", "must be one of finc, clusters, ken, rarity, fld, got ''"),
]

RANK_AND_GATE = [
    done("leaderboard --gen gen.h5 --gen other.h5 --ref ref.h5 --out o", "", within("o", board_of("gen", "other"))),
    done(
        f"leaderboard a=gen.h5 b=other --ref ref {TINY} --metrics vendi --out o --json",
        '"type": "leaderboard"',
        within("o", board_of("a", "b")),
    ),
    done("leaderboard --gen gen.h5 --ref ref.h5 --out o", "", within("o", board_of("gen"))),
    refused("leaderboard a=gen.h5 b=other.h5", "Missing option '--ref'"),
    done("gate --init --baseline y.npy --ref ward.sketch.h5 --policy new.toml", "private.farther = ", "new.toml"),
    done("leaderboard a=x.npy b=y.npy --ref ward.sketch.h5 --out o", "-DP", within("o", RANKED)),
    refused("leaderboard a=gen.h5 b=other.h5 --ref ward.sketch.h5 --out o", "784"),
    refused("leaderboard a=x.npy --ref ward.sketch.h5 --metrics fd --out o", "leave out metrics"),
    refused("leaderboard add board a=x.npy --ref ward.sketch.h5", "ward.sketch.h5 is a private sketch, which"),
    refused(
        "leaderboard a=gen.h5 b=other.h5 --ref ref.h5 --rank-by fid --out o",
        "the board does not have fid: rank by unmatched",
    ),
    refused("leaderboard a=gen.h5 b=other.h5 --ref ref.h5 --metrics fidd --out o", 'did you mean "fid"?'),
    refused(
        "leaderboard a=gen.h5 b=other.h5 --ref ref.h5 --out own/notes.html", "--out is the folder of several files"
    ),
    done(f"gate --init {RELEASE} --policy first.toml", "basics.duplicates", ["first.toml"]),
    done(f"gate --gen gen.h5 {RELEASE} --policy gate.toml --out o", "pass", within("o", VERDICT)),
    Command(
        f"gate --gen gen.h5 {RELEASE} --policy strict.toml --out o --json",
        '"overall": "regression"',
        tuple(within("o", VERDICT)),
        code=1,
    ),
    refused(f"gate {RELEASE} --policy gate.toml", "the gate needs the new release: pass --gen"),
    refused(
        f"gate --gen gen.h5 {RELEASE} --policy gone.toml --out o",
        "gone.toml does not exist: write it from the baseline by finc-eval gate --init --baseline other.h5 --ref "
        "ref.h5 --policy gone.toml",
    ),
    refused(
        "gate --gen ../gen.h5 --baseline ../other.h5 --ref ../ref.h5",
        "no release is judged without a policy, and gate.toml does not exist",
        folder="own",
    ),
    refused(
        "leaderboard a=gen.h5 --ref ref.h5 --out mine", "mine has a file reference.h5, which does not belong to a board"
    ),
    refused("leaderboard one=gen two=other --ref ref --metrics fid", "and not fid"),
    refused("leaderboard one=gen.h5 two=other.h5 --ref ref.h5 --metrics fid", "fid is defined on inception-fid"),
    refused("leaderboard one=gen two=other --ref ref --metrics fid,fvd", "a board has one extractor"),
    refused(f"gate --gen gen.h5 {RELEASE} --policy text --out o", "text cannot be read as a policy"),
    refused(f"gate --gen gen.h5 {RELEASE} --policy finc.toml --out o", 'unknown key "compare"'),
    refused(f"gate --gen gone {RELEASE} --policy gate.toml --out o", "gone does not exist"),
    refused(
        f"gate --init {RELEASE} --policy gate.toml", "gate.toml exists, and this command with these inputs did not"
    ),
    refused(f"gate --init {RELEASE} --policy own/notes.h5", "--policy must end in .toml"),
    refused(f"gate --gen x.npy {RELEASE} --policy gate.toml --out o", "784"),
]

METRICS = [
    done(f"metrics {SETS} --metrics vendi,prdc", "recall"),
    done(
        f"metrics {SETS} --metrics vendi --out o --json",
        '"type": "scores"',
        within("o", ("scores.html", "scores.json")),
    ),
    done(f"metrics {FOLDERS} {TINY} --metrics fd", "fd"),
    done("metrics --gen x.npy --ref stats.npz --metrics fd", "fd"),
    refused("metrics --gen x.npy --ref stats.npz --metrics fid", "extract with --extractor inception-fid"),
    refused(f"metrics {SETS} --metrics fidd", 'did you mean "fid"?'),
    refused(f"metrics {SETS} --metrics fid", "fid is defined on inception-fid"),
    refused(f"metrics {SETS} --metrics fld", "fld needs a third set"),
    refused(f"metrics {SETS} --metrics ''", "no metric was named"),
    refused("metrics --gen gen.h5 --ref ward.sketch.h5", "is a private sketch, which"),
    refused("metrics --gen gone --ref ref.h5", "gone does not exist"),
    refused(f"metrics {SETS} --metrics vendi --out scores.json", "--out is the folder of several files"),
]

PRIVACY = [
    done(
        f"audit --gen gen.h5 --train train --holdout holdout {TINY} --out o",
        "",
        within("o", ("audit.html", "audit.json")),
    ),
    refused("audit --gen few.npy --train x.npy --holdout y.npy --out o", "an audit needs at least 100"),
    refused("audit --gen x.npy --train y.npy --holdout y.npy --out o", "holdout"),
    refused("audit --gen x.npy --train y.npy --holdout x.npy --stated-epsilon 8 --out o", "pass both, or neither"),
    done("private sketch score --gen x.npy --ref ward.sketch.h5", "MMD"),
    done(
        "private sketch compare --gen a=x.npy --gen b=y.npy --ref ward.sketch.h5 --out o",
        "",
        within("o", ("private-comparison.html", "private-comparison.json")),
    ),
    done("private sketch inspect ward.sketch.h5", "DP, replace adjacency"),
    done("private sketch inspect --ledger spent.ledger --json", '"budget"'),
    refused("private sketch inspect", "name either a private sketch, or a ledger"),
    refused("private sketch score --gen gen.h5 --ref ward.sketch.h5", "784"),
    refused("private sketch score --gen x.npy --ref ref.h5", "ref.h5"),
    refused(
        "private sketch release --data gen.h5 --epsilon 1 --ledger new.ledger --budget 1 --out new.h5",
        "scales must not come from the private set",
    ),
    refused(
        "private sketch release --data gen.h5 --public ref.h5 --epsilon 1 --ledger new.ledger --out new.h5",
        "pass --budget",
    ),
    refused(
        "private sketch release --data gen.h5 --public ref.h5 --epsilon 1 --ledger new.ledger --budget 1 --out ref.h5",
        "exists, and what it cost would be lost",
    ),
    refused(
        "private sketch release --data gen.h5 --public ref.h5 --epsilon 5 --ledger new.ledger --budget 1 --out new.h5",
        "budget",
    ),
    done(
        "private generate --data patients.csv --table patients.toml --epsilon 1 --ledger new.ledger --budget 1 "
        "--steps 5 --out new.csv",
        "200 records drawn from a generator",
        ["new.csv", "new.html", "new.json", "new.ledger"],
    ),
    refused(
        "private generate --data patients.csv --epsilon 1 --ledger new.ledger --budget 1 --out new.csv",
        "patients.csv is a table: pass --table",
    ),
    refused(
        "private generate --data patients.csv --table patients.toml --epsilon 1 --ledger new.ledger --budget 1 "
        "--out own/notes.csv",
        "exists, and what it cost would be lost",
    ),
    refused(
        "private generate --data patients.csv --table table.csv --epsilon 1 --ledger new.ledger --budget 1 "
        "--out new.csv",
        "table.csv",
    ),
    refused(
        "private generate --data patients.csv --table patients.toml --epsilon 0 --ledger new.ledger --budget 1 "
        "--out new.csv",
        "epsilon",
    ),
]

HOUSEKEEPING = [
    done("doctor extractors list", "pixels"),
    done("doctor extractors list --json", '"name": "pixels"'),
    done("doctor extractors show pixels", "Common mistakes"),
    done("doctor extractors check pixels", "pixels on cpu"),
    refused("doctor extractors show dino", "dinov2-vit"),
    refused("doctor extractors check card.toml", "card.toml"),
    done("doctor weights list", "dinov2-vits14"),
    done("doctor weights where efficientnet-lite0", ""),
    refused("doctor weights fetch pixels", "pixels"),
    refused("doctor weights verify dinov2-vits14", "missing or wrong"),
    done("extract cache ls", "tiny"),
    done("extract cache ls --json", '"extractor": "tiny"'),
    done("extract cache verify gen.h5", "gen.h5: whole"),
    done(f"extract cache explain gen.h5 {TINY}", "nothing has changed"),
    done(f"extract cache explain gen.h5 {TINY} --n 50 --json", '"used_again": false'),
    refused("extract cache verify damaged.h5", "damaged.h5"),
    refused("extract cache explain nosuch", "nosuch"),
    refused("extract cache rm", "name the caches to delete"),
    refused("extract cache rm text", "text"),
    refused("extract cache rm --all gen.h5", "either --unfinished or --all"),
]

COMMANDS = [*FIRST_WORDS, *EXTRACT, *COMPARE, *STEPS, *RANK_AND_GATE, *METRICS, *PRIVACY, *HOUSEKEEPING]

AS_PROCESSES = [
    done("--version", "finc-eval "),
    refused("compare --gen gone --ref ref", "gone does not exist"),
    refused("compare --gen gen", "Missing option '--ref'"),
]
"""Commands that are called as a shell calls them."""
