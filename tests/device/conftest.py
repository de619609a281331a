import pytest
from _simulated import REASON, available


@pytest.fixture(autouse=True)
def simulated_device():
    """Skip where this version of torch cannot simulate a device."""
    if not available():
        pytest.skip(REASON)
