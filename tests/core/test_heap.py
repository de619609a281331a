"""Memory that is freed in a block is taken again without the system."""

import subprocess
import sys
import textwrap

import pytest

from finc_eval.core import heap
from finc_eval.core.heap import kept_memory

pytestmark = pytest.mark.skipif(heap._glibc() is None, reason="needs glibc, and its own thresholds")

MEASURES = """
import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from finc_eval.core.heap import kept_memory

ARRAY = 48 << 20  # bytes, above the largest of glibc's own thresholds for mappings

def faults():
    # Return the page faults of filling ten large arrays one after the other.
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        np.full(ARRAY, 1, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
"""


def run(code):
    """Run code in a process of its own: a heap that other tests have filled may have room for the arrays."""
    subprocess.run([sys.executable, "-c", MEASURES + textwrap.dedent(code)], check=True)


def test_freed_memory_is_kept_in_the_block_and_given_back_at_its_end():
    run("""
        outside, before = faults(), resident()
        with kept_memory():
            faults()
            inside, held = faults(), resident()
        assert inside * 10 < outside, (inside, outside)
        assert held - before > ARRAY / 2, (held, before)
        assert resident() - before < ARRAY / 4, (resident(), before)
    """)


@pytest.mark.long
def test_the_last_of_several_blocks_gives_back():
    run("""
        def short_block():
            with kept_memory():
                faults()

        outside = faults()
        with kept_memory():
            with ThreadPoolExecutor(1) as pool:
                pool.submit(short_block).result()
            faults()
            assert faults() * 10 < outside
    """)


def test_a_block_that_fails_gives_back():
    run("""
        before = resident()
        try:
            with kept_memory():
                faults()
                raise ValueError
        except ValueError:
            assert resident() - before < ARRAY / 4, (resident(), before)
    """)


@pytest.mark.parametrize("name", ["GLIBC_TUNABLES", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"])
def test_thresholds_that_the_environment_sets_stay(monkeypatch, name):
    monkeypatch.setenv(name, "glibc.malloc.trim_threshold=1000" if name == "GLIBC_TUNABLES" else "1000")
    monkeypatch.setattr(heap, "_set", lambda *_: pytest.fail("a threshold is set"))
    with kept_memory():
        pass


@pytest.mark.parametrize("library", [object(), type("Other", (), {"mallopt": print})()])
def test_another_c_library_is_left_alone(monkeypatch, library):
    monkeypatch.setattr(heap.ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(heap, "_set", lambda *_: pytest.fail("a threshold is set"))
    with kept_memory():
        pass


def test_the_module_needs_neither_torch_nor_numpy():
    code = "import sys, finc_eval.core.heap; assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
