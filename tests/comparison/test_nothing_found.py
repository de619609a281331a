"""A headline that says that nothing was found says what would have been, as far as it is known."""

from dataclasses import replace

import pytest
from _pages import SAME, a_comparison

from finc_eval.comparison.headline import MAX_SENTENCE, MAX_WORDS, TOO_FEW
from finc_eval.findings.visible import Visible

EQUAL = {"difference": 0.01, "difference_interval": (0.0, 0.04), "difference_p_value": 0.4, "sets_p_value": 0.4}
ALL, BLUR = Visible(0.18, 0.09, 0.04, 2.2), Visible(0.1)
SEEN, HALF = "A blurred 18 %, a lost class of 9 % or copies of 4 %", "2,700 against 7,500 samples show half."
NOTHING = "The sets do not differ significantly"

HEADLINES = [  # what is known, and the headline
    ({"visible": ALL}, f"{NOTHING}. {SEEN} would have been seen; {HALF}"),
    ({"visible": replace(ALL, times=None)}, f"{NOTHING}. {SEEN} would have been seen."),
    ({"visible": BLUR, "detectable": 1.0}, f"{NOTHING}; {TOO_FEW} A blurred tenth would have been seen."),
    ({"visible": Visible(lost=0.09)}, f"{NOTHING}; kinds below 1.9 % may be missed."),
    ({"visible": None}, f"{NOTHING}; kinds below 1.9 % may be missed."),
    ({"visible": ALL, "kinds_tested": 0, "tested": 0}, None),
]


@pytest.mark.parametrize(("known", "headline"), HEADLINES)
def test_nothing_found_says_what_would_have_been(known, headline):
    found = a_comparison(kinds=[SAME], **{**EQUAL, **known})
    if headline is None:
        assert "would have been" not in found.headline
    else:
        assert found.headline == headline
    assert len(found.headline.split()) <= MAX_WORDS
    assert all(len(sentence.split()) <= MAX_SENTENCE for sentence in found.headline.split(". "))
