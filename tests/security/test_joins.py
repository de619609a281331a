"""Every path that the package makes of a name is made by `inside`, or stands in a short list with its reason."""

import ast
from pathlib import Path

import pytest
from _trees import nodes_of

PACKAGE = Path(__file__).parents[2] / "finc_eval"

REVIEWED = {
    "the name is of this program, or made of one that the caller gave": {
        "cli/output.py": {
            "self.folder / f'{self.stem}{suffix}'",
            "Path('reports') / (name if name.strip('.') else 'result')",
            "folder.with_name(_as_name(folder.name, MAX_FOLDER_NAME - len(end.encode())) + end)",
        },
        "cli/golden.py": {"path.with_name(name)"},
        "cli/verbs/leaderboard.py": {"board.folder / f'leaderboard{suffix}'"},
        "cli/verbs/report.py": {"result / f'index.{form}'"},
        "core/kept/folder.py": {"self.path / folder", "self.path / name"},
        "leaderboards/stored.py": {"self.folder / f'{Leaderboard.type_name}.json'"},
        "partitions/pages/members.py": {
            "page.with_name(f'{page.stem}-members')",
            "members_folder(page) / member_page(members.id)",
        },
        "naming/kept_values.py": {"folder_of_columns() / f'{digest}.npz'"},
        "conventions/opened.py": {"open_source(given.given)"},
        "embeddings/stored/turned.py": {
            """_folder() / f"{sha256_of(f'180 {space} {ARITHMETIC}', content[rows])}.npz\""""
        },
        "same_ids/kept.py": {"folder_of_pairs() / f'{sha256_of(keys, *self.names)}.npz'"},
        "memorization/kept_steps.py": {
            "self._folder / f'{name}.npz'",
            """user_folder('embeddings') / f'audits-{LAYOUT}' / sha256_of('\\x00'.join(key))""",
        },
        "core/provenance.py": {"Path(sys.argv[0])"},
        "cli/command.py": {"Path(args[0])"},
        "cli/verbs/monitor.py": {"Path(arguments[0])"},
        "demo/planted.py": {"folder_inside(folder, kind) / f'{number:04d}.png'"},
        "demo/prompts.py": {"folder / name"},
        "demo/run.py": {"out / 'samples' / name", "out / f'{name}.h5'"},
        "core/doors.py": {"folder / name"},
        "core/places.py": {"Path(HOME, name)", "Path(given) / 'finc-eval' / name", "Path(given) / name"},
        "embeddings/job.py": {
            "cache_folder() / f'{key}.h5'",
            "(out or _default_path(name)).with_name(f'{STREAM}{name}.h5')",
        },
        "extractors/catalog.py": {"resources.files(CARDS) / f'{name}.toml'"},
        "extractors/cells.py": {"resources.files(CARDS) / file"},
        "embeddings/writer.py": {"EmbeddingCache(cache.path)", "StoredFile(cache.path)"},
        "extractors/fetch.py": {"part.with_name(f'{part.name}.json')"},
        "core/kept/entries.py": {"Path(RECORDS, name)"},
        "measures/protocols/card.py": {"resources.files(PROTOCOLS) / f'{name}{ENDING}'"},
        "gates/baseline.py": {
            "folder / f'{stem}.h5'",
            "folder / f'{stem}.npz'",
            "place / name",
            "self.folder / f'{len(self.bundles) + 1:04}'",
        },
        "private/kahm/federated.py": {"Path(folder) / f'{party}.distances.h5'"},
        "samples/shards.py": {"out.with_name(f'{out.stem}.{number:0{len(str(of))}}-of-{of}{out.suffix}')"},
    },
    "the name was found by listing a folder that the caller named": {
        "core/remote/mirror.py": {"Path(where, name)"},
        "core/storage.py": {"target.with_name(old)"},
        "gates/baseline.py": {"Path(source, name)"},
        "embeddings/folder.py": {"where / name", "path.with_name(path.name.removesuffix(PART))"},
        "loading.py": {"folder / name"},
        "report/index.py": {"self.folder / name"},
        "samples/files.py": {
            "Path(self.name)",
            "os.path.join(self.name, name)",
            "Path(self.name, name)",
            "Path(entry.path)",
        },
        "samples/opening.py": {"Path(folder, name)", "path.parent / nearest"},
        "samples/tar.py": {"on_disk(self._paths[entry.shard])"},
        "samples/video_files.py": {"Path(self.name)"},
    },
    "every part of the address was made harmless": {
        "core/places.py": {
            "root().joinpath('in', *folders, f'~{digest}', name)",
            "root().joinpath('out', *_parts(url))",
        }
    },
    "a member of an archive, which is no file of the disk": {"samples/tar.py": {"name.with_name(stem)"}},
    "a card, which its user trusts": {
        "extractors/catalog.py": {"path.absolute().parent / with_home(card.weights.file)"},
        "extractors/fetch.py": {"Path(weights.file)", "weights_folder() / weights.file"},
        "extractors/weights.py": {
            "folder / name",
            "Path(folder) / inside",
            "Path(folder) / inside / weights.file",
            "weights_folder() / weights.file",
        },
        "measures/protocols/card.py": {"folder / with_home(card.extractor)"},
    },
    "a program chose the rows of a dataset that it passes": {"samples/hugging_face.py": {"Path(stored['path'])"}},
    "the pixels that are read there must be those of the cache": {
        "embeddings/pictures.py": {"open_stated(self.place)"}
    },
    "what is read there is compared and counted, and never shown": {
        "embeddings/folder.py": {"open_stated(cache.source)"}
    },
    "the folder of git that is named must name this checkout, or lie in that of one around it": {
        "core/provenance.py": {"git_path.parent / match[1]"}
    },
    "the function itself": {"core/doors.py": {"Path(folder, name)"}},
}
"""Places where a path is made of a name, by their reason. A name out of a file does not belong here: use `inside`."""

PLACES = {"folder", "path", "root", "place", "out", "home", "here", "where", "parent", "target", "temporary", "base"}
"""Words for folders and files, as variables and as the end of names."""

DOORS = {
    "Path", "on_disk", "load_card", "open_source", "open_stated", "open_file", "open", "read_json", "read_toml",
    "read_text", "load", "existing_file", "EmbeddingCache", "StoredFile",
}  # fmt: skip
"""Functions that open what they are given: not a field of a record, or an entry of a table."""

FORMS = {"Path", "PurePath", "PurePosixPath"}
OWN = {"name", "stem", "suffix"}


def is_place(node):
    """Whether an expression is a path, by its words: in mathematics "/" divides numbers."""
    match node:
        case ast.BinOp(op=ast.Div(), left=left, right=right):
            return is_place(left) or is_text(right)
        case ast.Name(id=word) | ast.Attribute(attr=word):
            return word.rpartition("_")[2] in PLACES
        case ast.Call(func=ast.Name(id=word)):
            return word in FORMS or word.rpartition("_")[2] in PLACES
        case ast.Call(func=ast.Attribute(attr=word)):
            return word in {"absolute", "resolve", "expanduser", "joinpath", "with_name", "files", "cwd", "home"}
    return False


def is_text(node):
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_fixed(node):
    """Whether a part of a path is a constant, or made of the path's own name and of numbers of the process."""
    match node:
        case ast.Constant() | ast.Name(id=_) if not isinstance(node, ast.Name) or node.id.isupper():
            return True
        case ast.Attribute(attr=word):
            return word in OWN and is_place(node.value)
        case ast.FormattedValue(value=value):
            return is_fixed(value)
        case ast.JoinedStr(values=values):
            return all(map(is_fixed, values))
        case ast.Call(func=ast.Attribute(attr="getpid" | "get_ident")):
            return True
    return False


def joins(nodes):
    """Yield the expressions that make a path of a name that is not fixed, or open a field of a record."""
    only_named = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr in {*OWN, "parts", "is_absolute"}
    }
    for node in nodes:
        match node:
            case ast.BinOp(op=ast.Div(), left=left, right=right) if is_place(left) or is_text(right):
                found = not is_fixed(right)
            case ast.Call(func=ast.Attribute(attr="joinpath" | "with_name"), args=parts):
                found = not all(map(is_fixed, parts))
            case ast.Call(func=ast.Name(id=word), args=[_, *parts]) if word in FORMS and parts:
                found = not all(map(is_fixed, parts))
            case ast.Call(func=ast.Name(id=word), args=[ast.Attribute() | ast.Subscript() as one, *_]) if word in DOORS:
                found = id(node) not in only_named and not own_place(word, one)
                node = ast.Call(node.func, [one], []) if found else node
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="path"), attr="join")):
                found = True
            case _:
                found = False
        if found:
            yield ast.unparse(node)


def own_place(door, node):
    """Whether what is opened is the path that an object was made with, `self.path`."""
    return isinstance(node, ast.Attribute) and ast.unparse(node) in {"self.path", "self.folder"} and door != "Path"


def found_in(path):
    return {(str(path.relative_to(PACKAGE).as_posix()), one) for one in joins(nodes_of(path))}


def test_every_path_that_is_made_of_a_name_is_reviewed_or_stays_inside():
    made = set().union(*map(found_in, PACKAGE.rglob("*.py")))
    known = {(file, one) for files in REVIEWED.values() for file, ones in files.items() for one in ones}
    assert sorted(made - known) == [], "use finc_eval.core.doors, or review the place and give its reason"
    assert sorted(known - made) == [], "these are gone: remove them from the list"


@pytest.mark.parametrize(
    "line",
    [
        "(self.folder / index.models[name].file).unlink()",
        "(self.folder / file).unlink(missing_ok=True)",
        "self.folder / self.stated.samples",
        "digest_of(folder / name)",
        "Path(stored['path']).open('rb')",
        "Path(dataset_path, data_file['filename'])",
        "os.path.join(folder, row['file_name'])",
        "root.joinpath(header['name'])",
        "Path('reports') / title",
        "cache_folder / f'{header.key}.h5'",
        "path.with_name(stated.samples)",
        "path.parent / row.path",
        "load_card(cache.extractor)",
        "open_source(cache.source, clip=cache.clip)",
        "read_json(state['file'])",
        "open(entry.file)",
    ],
)
def test_the_walk_finds_the_lines_that_were_faults(line):
    assert list(joins([*ast.walk(ast.parse(line))]))


@pytest.mark.parametrize(
    "line",
    [
        "total / fold.n",
        "1 / float(p.max())",
        "folder / 'board.json'",
        "folder / STATED",
        "inside(folder, row['path'])",
        "Path(cache.source).name",
        "target.with_name(f'.{target.name}.{os.getpid()}.tmp')",
        "on_disk(self.path)",
    ],
)
def test_the_walk_passes_over_numbers_fixed_names_and_names_that_are_checked(line):
    assert not list(joins([*ast.walk(ast.parse(line))]))
