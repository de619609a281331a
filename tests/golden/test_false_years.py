"""Years of nights without a fault: few have a red night."""

import numpy as np
import pytest
from _nights import Year, as_pixels, noisy


def light(one, rng):
    return as_pixels(noisy(one, rng, 1) + rng.normal(0, 1))


@pytest.mark.by_turns(2)
@pytest.mark.long
@pytest.mark.parametrize("change", [noisy, light])
def test_years_without_a_fault_have_a_red_night_in_5_percent_at_most(change):
    red = []
    for seed in range(20):
        year = Year(pairs=2, seed=seed)
        red.append("red" in year.nights(100, change=change))
    assert np.sum(red) <= 3  # 4 or more of 20 have a probability of 1.6 % at 5 %
