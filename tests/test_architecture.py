"""The house keeps its shape: small folders, small modules, imports that go down, and docs that name what exists.

`make lint` checks the layers and the cycles (import-linter, `pyproject.toml`); these tests check the rest.
"""

import ast
import re
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from _trees import nodes_of, tree_of

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "finc_eval"
MAX_MODULES, MAX_LINES, MAX_BODY = 20, 400, 40

PLACES = (ROOT, PACKAGE, PACKAGE / "private", PACKAGE / "cli")
"""Folders and files with which a path in the architecture page begins."""

MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})


def table_rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading of a Markdown text, without its two head lines."""
    section = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
QUESTIONS = table_rows(ARCHITECTURE, "Where is …?")
STEPS = table_rows(ARCHITECTURE, "The way of a sample")


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def floors() -> dict[str, int]:
    """The floor of each folder and top-level module; a higher number may import a lower one."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in linter["contracts"] if contract["type"] == "layers")
    return {room.strip(): floor for floor, layer in enumerate(reversed(layers)) for room in layer.split("|")}


def imports(path: Path, *, lazy: bool) -> list[tuple[int, str]]:
    """The line and the full name of each import of the package; `lazy`: only those inside functions."""
    functions = [node for node in nodes_of(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = set()
    for node in [part for function in functions for part in ast.walk(function)] if lazy else nodes_of(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write imports with their full name"
            whole = node.module == "finc_eval"
            names = [f"finc_eval.{alias.name}" for alias in node.names] if whole else [node.module]
        else:
            continue
        found |= {(node.lineno, name) for name in names if name.split(".")[0] == "finc_eval"}
    return sorted(found)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_has_at_most_twenty_modules(folder):
    modules = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MAX_MODULES, f"{len(modules)} modules: divide the folder by questions"


def test_no_module_is_longer_than_four_hundred_lines():
    lines = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function's body without its docstring; those of functions inside it count."""
    body = function.body[ast.get_docstring(function, clean=False) is not None :]
    return function.end_lineno - body[0].lineno + 1 if body else 0


def test_each_class_has_a_name_of_its_own():
    names = [node.name for path in MODULES for node in nodes_of(path) if isinstance(node, ast.ClassDef)]
    by_contract = {"Outputs"}  # which a loader's module may have: `finc_eval.extractors.networks`
    assert {name for name, count in Counter(names).items() if count > 1} <= by_contract


BOUND = re.compile(r"^([A-Z][A-Z0-9_]*)(?:: [^=]+)? = (?!.*\b\1\b)", re.MULTILINE)
"""A constant that is bound at the start of a line, without those that are made of their old value."""


def test_a_module_binds_a_constant_once():
    """A second constant of the same name takes the place of the first, which another function may still read."""
    folders = (ROOT / folder for folder in ("finc_eval", "tests", "benchmarks", "scripts"))
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    bound = {path.relative_to(ROOT): Counter(BOUND.findall(path.read_text(encoding="utf-8"))) for path in paths}
    assert sum(names.total() for names in bound.values()) > 2000
    assert [f"{path}: {name}" for path, names in bound.items() for name, count in names.items() if count > 1] == []


def test_no_function_has_more_than_forty_lines_in_its_body():
    long = {
        f"{name_of(path)}.{node.name}"
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and body_lines(node) > MAX_BODY
    }
    assert long == set()


def is_number(value: ast.expr | None) -> bool:
    """Whether a value is a number, or numbers in a tuple, without names, calls and texts."""
    parts = ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator, ast.unaryop, ast.Load
    nodes = list(ast.walk(value)) if value is not None else [ast.Name()]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return all(isinstance(node, parts) for node in nodes) and all(isinstance(one, int | float) for one in constants)


def text_of(lines: list[str], body: list[ast.stmt], place: int) -> str:
    """The docstring after a definition, and the comments on its lines and right above it."""
    node, after = body[place], body[place + 1] if place + 1 < len(body) else None
    first = node.lineno - 1
    while first and lines[first - 1].startswith("#"):
        first -= 1
    comments = [line.partition("#")[2] for line in lines[first : node.end_lineno]]
    doc = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
    return " ".join([*comments, str(doc)])


def numeric_constants() -> dict[tuple[str, str], str]:
    """The text beside each numeric constant of a module, by module and name."""
    found = {}
    for path in MODULES:
        body, lines = tree_of(path).body, path.read_text(encoding="utf-8").splitlines()
        for place, node in enumerate(body):
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            names = [one for target in targets if target for one in getattr(target, "elts", [target])]
            upper = [one.id for one in names if isinstance(one, ast.Name) and one.id.isupper()]
            if upper and is_number(getattr(node, "value", None)):
                found |= {(name_of(path), name): text_of(lines, body, place) for name in upper}
    return found


def uses(constants: set[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """How often each constant is read: in the package, and by name in tests and benchmarks."""
    found: Counter[tuple[str, str]] = Counter()
    of_modules = {name_of(path): path for path in MODULES}
    for module, path in of_modules.items():
        local = {name: (home, name) for home, name in constants if home == module}
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                local |= {one.asname or one.name: (node.module or "", one.name) for one in node.names}
        reads = [node.id for node in nodes_of(path) if isinstance(node, ast.Name) and node.id.isupper()]
        found.update(local[name] for name in reads if name in local)
    for name in constants & found.keys():
        found[name] -= name[0] in of_modules  # its definition
    outside = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    outside.remove(Path(__file__))
    words = Counter(re.findall(r"\b[A-Z][A-Z0-9_]+\b", " ".join(path.read_text(encoding="utf-8") for path in outside)))
    return Counter({name: found[name] + words[name[1]] for name in constants})


EVIDENCE = re.compile(
    r"\d|author|paper|torch-fidelity|faiss|measured|ITU|ISO|benchmark|simulat|glibc|version|Pillow|FFmpeg|thousand|half"
)
CHOSEN = {
    "by eye, of drawings": {
        *("comparison.pages.figures.LOWER_HEIGHT", "report.drawings.FOREST_AROUND"),
        *("report.exports.paper.PAPER_WIDTH", "report.exports.paper.PANEL_AROUND"),
    },
    "by a format": {"embeddings.stored.journal.JOURNAL_LAYOUT"},
    "to bound a search": {"comparison.settings.MAX_RHO"},
    "by judgment, and no script makes them again": {
        *("extractors.networks.motion.FORCE", "extractors.networks.motion.LIGHT_DRIFT"),
        *("extractors.networks.motion.STEP_NOISE", "extractors.networks.motion.SHARP"),
        *("naming.repeated.REPEATED", "naming.texture.MOSAIC"),
        *("numerics.thresholds.LEAST_OF_A_MEMBER", "numerics.thresholds.HALF_A_MEMBER"),
        "numerics.thresholds.MOST_OF_A_MEMBER",
    },
}
"""Numeric constants that are used once and do not say where they come from, by how they were chosen."""


def test_a_numeric_constant_is_used_twice_or_says_where_it_comes_from():
    texts = numeric_constants()
    count = uses(set(texts))
    bare = [f"{home}.{name}" for (home, name), text in texts.items() if count[home, name] < 2]
    bare = [one for one in bare if not EVIDENCE.search(texts[tuple(one.rsplit(".", 1))])]
    chosen = {f"finc_eval.{one}" for reason in CHOSEN.values() for one in reason}
    assert sorted({*bare} - chosen) == []
    assert chosen <= {f"{home}.{name}" for home, name in texts}, "of constants that are no more"


def test_the_scripts_and_tests_that_modules_name_exist():
    """A constant that cites the script that makes it again cites a script that is there."""
    named = {
        (name_of(path), script)
        for path in MODULES
        for script in re.findall(r"\b(?:benchmarks|tests|scripts)/[\w/]+\.py\b", path.read_text(encoding="utf-8"))
    }
    assert len(named) >= 10
    assert sorted((module, script) for module, script in named if not (ROOT / script).exists()) == []


MOST_CALLED_ONE = 170
"""Variables and parameters that may be called `one`: a name says what the thing is. It only falls."""


def test_few_variables_are_called_one():
    bound = [
        name_of(path)
        for path in MODULES
        for node in nodes_of(path)
        if (isinstance(node, ast.arg) and node.arg == "one")
        or (isinstance(node, ast.Name) and node.id == "one" and isinstance(node.ctx, ast.Store))
    ]
    assert len(bound) <= MOST_CALLED_ONE, f"{len(bound)} variables are called one: name the things"


def test_no_import_inside_a_function_goes_up():
    floor = floors()
    upwards = [
        f"{name_of(path)}:{line} imports {name}"
        for path in MODULES
        for line, name in imports(path, lazy=True)
        if floor[name.split(".")[1]] > floor[name_of(path).split(".")[1]]
    ]
    assert upwards == []


SETS = {"core", "wing", "samples", "extractors", "embeddings"}
MATHEMATICS = {"numerics", "feature_maps", "sketches", "estimates"}
LOADED_ROOMS = {
    "core.serialize": {"core"},
    "measures.frechet": SETS | MATHEMATICS | {"measures"},
    "partitions.kinds": SETS | MATHEMATICS | {"naming", "gallery", "partitions"},
    "comparison.compare": SETS
    | MATHEMATICS
    | {"naming", "gallery", "partitions", "findings", "local_evidence"}
    | {"baselines", "prompts", "same_ids", "comparison"},
}
"""Rooms that load with a module: a reader has to know of them, and a test waits for them."""


def loaded_with(name: str) -> set[str]:
    """The modules that load with a module: all but those that are imported lazily or for types, and empty packages."""
    paths, found, waiting = {name_of(path): path for path in MODULES}, set(), [f"finc_eval.{name}"]
    while waiting:
        own = waiting.pop()
        if own in found or own not in paths:
            continue
        found.add(own)
        parts = own.split(".")
        waiting += [".".join(parts[:depth]) for depth in range(2, len(parts))]
        for node in tree_of(paths[own]).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("finc_eval"):
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return {one for one in found if one != "finc_eval" and len(tree_of(paths[one]).body) > 1}


@pytest.mark.parametrize("name", LOADED_ROOMS)
def test_a_module_loads_no_room_that_it_does_not_need(name):
    rooms = defaultdict(list)
    for one in sorted(loaded_with(name)):
        rooms[one.split(".")[1]].append(one)
    assert {room: modules for room, modules in rooms.items() if room not in LOADED_ROOMS[name]} == {}


ONLY_READERS = {"h5py": {"finc_eval.core.files.hdf5"}, "tomllib": {"finc_eval.core.files.parsed"}}
"""Modules that may import a reader of files: all others go through the guarded doors of `core/files`."""


@pytest.mark.parametrize("package", ONLY_READERS)
def test_files_are_read_by_the_guarded_doors_alone(package):
    found = {
        name_of(path)
        for path in MODULES
        for node in nodes_of(path)
        if (isinstance(node, ast.Import) and any(one.name == package for one in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == package)
    }
    assert found == ONLY_READERS[package]


KNOW_THE_NETWORK = {
    "finc_eval.core.files.on_disk",  # what is read
    "finc_eval.core.storage",  # what is written
    "finc_eval.samples.files",  # what a folder holds
    "finc_eval.extractors.fetch",  # weights
}
"""Modules that may import the room of URLs, `core/remote`: for all others a place is a path or a text."""


def test_urls_are_resolved_where_files_are_read_and_written_alone():
    remote = PACKAGE / "core" / "remote"
    outside = [path for path in MODULES if remote not in path.parents]
    found = {
        name_of(path)
        for path in outside
        for _, name in imports(path, lazy=False)
        if name.startswith("finc_eval.core.remote")
    }
    assert found == KNOW_THE_NETWORK


def test_no_module_below_the_command_line_imports_the_public_names_of_the_package():
    """They load lazily, so import-linter does not see what is behind them."""
    rooms = {path.stem for path in PACKAGE.iterdir()}
    hidden = [
        f"{name_of(path)}:{line} imports {name}"
        for path in MODULES
        if PACKAGE / "cli" not in path.parents
        for line, name in imports(path, lazy=False)
        if name == "finc_eval" or name.split(".")[1] not in rooms
    ]
    assert hidden == []


def test_every_floor_of_the_contract_exists_and_is_described():
    rooms = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"} - {"__pycache__"}
    assert set(floors()) == rooms - {"__init__"}
    missing = [room for room in floors() if f"| `{room}` |" not in ARCHITECTURE]
    assert missing == []


def test_the_table_answers_at_least_twenty_questions():
    assert len(QUESTIONS) >= 20


@pytest.mark.parametrize("question, answer", QUESTIONS, ids=[question for question, _ in QUESTIONS])
def test_a_newcomers_question_is_answered_by_files_that_exist(question, answer):
    names = re.findall(r"`([^`]+)`", answer)
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("file, name", [step[2:] for step in STEPS], ids=[step[3].strip("`") for step in STEPS])
def test_each_step_of_the_way_is_a_function_or_class_of_its_file(file, name):
    tree = tree_of(ROOT / file.strip("`"))
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert name.strip("`") in defined


def test_the_files_that_the_architecture_names_exist():
    names = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", ARCHITECTURE))
    assert sorted(name for name in names if not any((top / name).exists() for top in PLACES)) == []


def test_homes_are_looked_up_in_one_place():
    found = {name_of(path) for path in MODULES if ".expanduser()" in path.read_text(encoding="utf-8")}
    assert found == {"finc_eval.core.doors"}, "call with_home, or known_home where a user may have none"
