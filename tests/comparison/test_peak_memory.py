"""Memory is bounded by the batch."""

import subprocess
import sys

import pytest

MEMORY = """
from pathlib import Path
import numpy as np
import finc_eval as fe
rng = np.random.default_rng(0)
gen, ref = (rng.standard_normal((20_000, 768), dtype=np.float32) for _ in range(2))
fe.compare(gen=gen, ref=ref, features=2000, run=fe.Run(device="cpu"))
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak memory from /proc")
def test_twenty_thousand_against_twenty_thousand_stays_under_two_gigabytes():
    # Not from rusage, which counts what the parent held when it forked the child.
    result = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(result.stdout) * 1024 < 2e9
