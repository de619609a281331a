"""A disk that is full is one sentence, and HDF5 does not crash at exit."""

import resource
import subprocess
import sys

import pytest

WRITING = """
import resource, signal, sys
import numpy as np
from finc_eval.core.errors import DataError
from finc_eval.core.files.writing import new_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    with new_file(sys.argv[1], "sketch", 1) as file:
        for number in range(3):
            file.array(f"a{number}", np.ones(100_000))
            file.texts(f"t{number}", [str(one * 7919) for one in range(100_000)])
except DataError as error:
    print(error)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="limits the size of files")
@pytest.mark.parametrize(
    "room", [0, 1_700_000, 2_700_000, *(pytest.param(room, marks=pytest.mark.long) for room in (500, 50_000, 900_000))]
)
def test_a_file_that_finds_no_room_is_one_sentence(tmp_path, room):
    made = subprocess.run(
        [sys.executable, "-c", WRITING, str(tmp_path / "x.h5"), str(room)], capture_output=True, text=True
    )
    assert (made.returncode, made.stderr) == (0, "")
    assert f"{tmp_path / 'x.h5'} cannot be written" in made.stdout
    assert not (tmp_path / "x.h5").exists()
