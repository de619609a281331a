"""A column that a user registers: what it takes, what it refuses, and which values are measured anew."""

import numpy as np
import pytest
from _redder import COLUMNS, held, pictures, redness

import finc_eval as fe
from finc_eval.naming import kept_values
from finc_eval.naming.columns import ColumnMeasurer, RegisteredColumn, registered_columns
from finc_eval.naming.digests import digest_of

REFUSED = {
    "name of a look": (("brightness", redness), {}, "is taken"),
    "name of a look of clips": (("flicker", redness), {}, "is taken"),
    "name that a monitor follows": (("distance", redness), {}, "is taken"),
    "empty name": (("", redness), {}, "must have a name"),
    "number as name": ((3, redness), {}, "must have a name"),
    "name of two lines": (("a\nb", redness), {}, "must have a name"),
    "not callable": (("red", 3), {}, "must be callable"),
    "empty words": (("red", redness), {"less": " "}, "less must be a few words"),
    "number as words": (("red", redness), {"more": 1}, "more must be a few words"),
    "unknown bad side": (("red", redness), {"bad": "big"}, "bad"),
    "unknown look": (("red", redness), {"brings": ["brightnes"]}, "did you mean"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_column_is_refused_in_a_sentence_and_not_registered(case):
    given, options, said = REFUSED[case]
    with pytest.raises(fe.UsageError, match=said):
        fe.register_column(*given, **options)
    assert registered_columns() == ()


BROKEN = {
    "nan": (lambda image: float("nan"), "returned nan for the sample '"),
    "infinite": (lambda image: -np.inf, "returned -inf for the sample '"),
    "None": (lambda image: None, "returned None for the sample '"),
    "text": (lambda image: "red", "returned 'red' for the sample '"),
    "several numbers": (lambda image: np.zeros(3), r"returned array\(\[0., 0., 0.\]\) for the sample '"),
    "huge": (lambda image: 10**400, "returned int 1000.* for the sample '"),
    "complex": (lambda image: 1j, "returned 1j for the sample '"),
    "raising": (lambda image: 1 / 0, "failed on the sample '.*': ZeroDivisionError: division by zero"),
    "raising its own error": (lambda image: fe.load("nothing.json"), "failed on the sample '.*': DataError"),
}


@pytest.mark.one_of_each(by=lambda case: BROKEN[case][1].split()[0] + str(case in ("None", "text")))
@pytest.mark.parametrize("case", BROKEN)
def test_a_function_that_fails_names_the_column_the_sample_and_what_it_returned(case):
    function, said = BROKEN[case]
    fe.register_column("mine", function)
    with pytest.raises(fe.UsageError, match=f"the function of the column 'mine' {said}"):
        fe.compare(held(pictures(20, 1)), held(pictures(20, 2)), features=50)


def values_of(sets, name="mine"):
    found = fe.compare(*map(held, sets), features=50)
    return next((one.middle_gen for one in found.looks if one.trait == name), None)


def test_another_function_under_the_same_name_is_measured_anew():
    sets = pictures(24, 1, red=80), pictures(24, 2)
    fe.register_column("mine", lambda image: redness(image))
    first = values_of(sets)
    fe.register_column("mine", lambda image: redness(image) / 100)
    assert values_of(sets) == pytest.approx(first / 100)
    fe.unregister_column("mine")
    assert values_of(sets) is None
    with pytest.raises(fe.UsageError, match="no column is registered as 'mine'"):
        fe.unregister_column("mine")


SCALE = 1.0


def scaled(image):
    return redness(image) * SCALE


def test_a_constant_that_the_function_reads_is_a_part_of_it(monkeypatch):
    pixels = pictures(6, 1, red=80)
    _, first = measured(scaled, pixels)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    asked, second = measured(scaled, pixels)
    assert asked == 6 and second.values == pytest.approx(3 * first.values)


def helper(image):
    return redness(image)


def by_helper(image):
    return helper(image)


def test_a_function_that_the_function_calls_is_a_part_of_it(monkeypatch):
    before = digest_of(by_helper)
    monkeypatch.setitem(globals(), "helper", lambda image: -redness(image))
    assert before is not None and digest_of(by_helper) not in (None, before)


def made(source):
    """A function as a cell of a notebook defines it."""
    space = {"np": np}
    exec(source, space)
    return space["f"]


SAME = {
    "names of variables": ("def f(image): return image.width", "def f(picture):\n\n    return picture.width"),
    "words about it": ("def f(i): return i.width", "def f(i):\n    # the width\n    return i.width"),
}
OTHER = {
    "number": ("def f(i): return i.width > 3", "def f(i): return i.width > 4"),
    "type of a number": ("def f(i): return i.width * 1", "def f(i): return i.width * 1.0"),
    "attribute": ("def f(i): return i.width", "def f(i): return i.height"),
    "default": ("def f(i, a=1): return a", "def f(i, a=2): return a"),
    "default of a keyword": ("def f(i, *, a=1): return a", "def f(i, *, a=2): return a"),
    "constant": ("A = 1\ndef f(i): return A", "A = 2\ndef f(i): return A"),
    "constant of a tuple": ("A = (1, 2)\ndef f(i): return A[0]", "A = (1, 3)\ndef f(i): return A[0]"),
    "function inside": ("def f(i): return max(x + 1 for x in i)", "def f(i): return max(x + 2 for x in i)"),
    "function called": ("g = lambda i: 1\ndef f(i): return g(i)", "g = lambda i: 2\ndef f(i): return g(i)"),
    "closure": ("def h(a): return lambda i: a\nf = h(1)", "def h(a): return lambda i: a\nf = h(2)"),
    "function of a package": ("def f(i): return np.mean(i)", "def f(i): return np.std(i)"),
    "operator": ("def f(i): return i.width + 1", "def f(i): return i.width - 1"),
    "what an error leads to": (
        "def f(i):\n    try:\n        return i.a\n    except AttributeError:\n        return 1",
        "def f(i):\n    try:\n        return i.a\n    except AttributeError:\n        return 2",
    ),
}
UNSEEN = {
    "list": "A = []\ndef f(i): A.append(1); return len(A)",
    "dictionary": "A = {}\ndef f(i): return A.setdefault(i.width, 1)",
    "array": "A = np.zeros(3)\ndef f(i): return A[0]",
    "count": "n = 0\ndef f(i):\n    global n\n    n += 1\n    return n",
    "count of a closure": "def h():\n    n = 0\n    def f(i):\n        nonlocal n\n        n += 1\n        return n\n"
    "    return f\nf = h()",
    "object": "class A:\n    b = 1\na = A()\ndef f(i): return a.b",
    "class": "class A:\n    b = 1\ndef f(i): return A.b",
    "attribute of the function": "def f(i): return f.a\nf.a = 1",
    "file": "def f(i): return len(open('a').read())",
    "array of a file": "def f(i): return np.load('a.npy').mean()",
    "chance": "def f(i): return np.random.default_rng().normal()",
    "module that reads": "import pathlib\ndef f(i): return len(pathlib.Path('a').read_text())",
    "module inside": "def f(i):\n    import torch\n    return torch.rand(1)",
    "code from a text": "def f(i): return eval('1')",
    "unknown name": "def f(i): return later(i)",
    "method": "class A:\n    def g(self, i): return 1\nf = A().g",
    "callable object": "class A:\n    def __call__(self, i): return 1\nf = A()",
    "part of a function": "import functools\nf = functools.partial(lambda a, i: a, 1)",
    "function of C": "f = len",
    "cache": "import functools\nf = functools.lru_cache(lambda i: 1)",
}


@pytest.mark.parametrize("case", SAME)
def test_a_function_is_known_again_if_it_does_the_same(case):
    first, second = (digest_of(made(one)) for one in SAME[case])
    assert first == second is not None


@pytest.mark.parametrize("case", OTHER)
def test_a_function_that_does_something_else_is_another(case):
    first, second = (digest_of(made(one)) for one in OTHER[case])
    assert None not in (first, second) and first != second


@pytest.mark.parametrize("case", UNSEEN)
def test_a_function_that_uses_what_may_change_unseen_is_measured_anew(case):
    assert digest_of(made(UNSEEN[case])) is None


def test_values_are_kept_by_pixels_and_code_and_those_of_unseen_code_are_not():
    from PIL import Image

    images = [Image.fromarray(one) for one in pictures(3, 7)]
    content = np.array([11, 22, 33], np.uint64)

    def missing(column):
        return ColumnMeasurer((column,), ["a", "b", "c"], content).missing.tolist()

    for function, left in ((redness, [2]), (COLUMNS["object with a state"][0], [0, 1, 2])):
        column = RegisteredColumn("mine", function)
        assert missing(column) == [0, 1, 2]
        measurer = ColumnMeasurer((column,), ["a", "b"], content[:2])
        measurer.add([0, 1], images[:2])
        measurer.keep()
        assert missing(column) == left
        assert missing(RegisteredColumn("another name", function)) == left  # the name says nothing
        assert ColumnMeasurer((column,), ["a", "b", "c"], None).missing.tolist() == [0, 1, 2]


def test_each_picture_of_a_comparison_is_measured_once_and_is_a_copy_in_color():
    seen = []

    def spoil(image):
        seen.append((image.mode, np.asarray(image).tobytes()))
        image.paste(0, (0, 0, *image.size))
        return image.width

    fe.register_column("mine", spoil)
    gray = pictures(30, 1)[..., 0], pictures(30, 2)[..., 0]
    fe.compare(*map(held, gray), features=50)
    assert {mode for mode, _ in seen} == {"RGB"}
    assert len(seen) == len({pixels for _, pixels in seen}) == 60


@pytest.fixture
def another_process(monkeypatch):
    """Forget what this process keeps in memory, as another process does not have it."""

    def forget():
        monkeypatch.setattr(kept_values, "_KEPT", {})

    forget()
    return forget


def measured(function, pixels):
    """Measure a column of a set, and return how many pictures the function was asked for, and the values."""
    column = RegisteredColumn("mine", function)
    one = held(pixels)
    measurer = ColumnMeasurer((column,), one.ids_at(np.arange(one.n)), one.content())
    missing = measurer.missing
    measurer.add(missing.tolist(), one.images_at(missing))
    measurer.keep()
    return len(missing), measurer.found[column]


def test_another_process_does_not_measure_the_same_pictures_again(another_process):
    pixels = pictures(12, 5)
    asked, first = measured(redness, pixels)
    another_process()
    again, second = measured(redness, pixels[::-1])
    assert (asked, again) == (12, 0)
    assert second.values.tolist() == first.values[::-1].tolist() and not second.is_flag
    another_process()
    assert measured(lambda image: redness(image) + 1, pixels)[0] == 12
    assert measured(lambda image: redness(image) > 0, pixels)[1].is_flag
    another_process()
    assert measured(lambda image: redness(image) > 0, pixels[:3])[1].is_flag


DAMAGES = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "no archive": lambda path: path.write_bytes(b"nothing"),
    "another layout": lambda path: np.savez(path, keys=np.arange(3)),
    "other lengths": lambda path: np.savez(
        path, keys=np.arange(3, dtype=np.uint64), values=np.zeros(2), flags=np.ones(3, bool)
    ),
    "values of another type": lambda path: np.savez(
        path, keys=np.arange(3, dtype=np.uint64), values=np.zeros(3, int), flags=np.ones(3, bool)
    ),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_file_of_kept_values_is_measured_again(case, another_process):
    pixels = pictures(6, 5)
    _, first = measured(redness, pixels)
    (path,) = kept_values.folder_of_columns().glob("*.npz")
    DAMAGES[case](path)
    another_process()
    asked, second = measured(redness, pixels)
    assert asked == 6 and second.values.tolist() == first.values.tolist()


def test_what_is_kept_is_bounded(another_process, monkeypatch):
    monkeypatch.setattr(kept_values, "MOST_VALUES", 8)
    monkeypatch.setattr(kept_values, "MOST_FILES", 2)
    pixels = pictures(12, 5)
    measured(redness, pixels)
    assert len(kept_values.known_values(digest_of(redness))) == 8
    assert measured(redness, pixels)[0] == 4  # the first of these were dropped
    for number in range(3):
        measured(made(f"def f(image): return image.width + {number}"), pixels[:2])
    assert len([*kept_values.folder_of_columns().glob("*.npz")]) == 2


def test_a_folder_that_cannot_be_written_stops_nothing(another_process, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "file"))
    assert measured(redness, pictures(5, 5))[0] == 5
