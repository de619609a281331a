"""Half-widths are those of `Estimate`: whoever else takes a quantile of an error is listed here, with the reason."""

import re
from pathlib import Path

import finc_eval

QUANTILE = re.compile(r"\b((student|normal|upper)_quantile|ndtri|stdtrit|critical_value|norm\.ppf|t\.ppf|isf)\(")
"""Calls that give a quantile of a law of errors."""

OWNERS = {"estimates/estimate.py", "estimates/error_source.py", "numerics/inference.py"}

EXACT = "exact or nearly exact bounds of shares, also of a share that no sample shows"
NO_INTERVAL = "no interval of a number: "

OTHERS = {
    "comparison/assemble.py": EXACT + ", at a level of all directions",
    "comparison/estimates.py": "all directions at once, from moments of sketches; no influence of samples is known",
    "comparison/score_pass.py": "the same, for paired sets: as wide as Student's quantile",
    "conventions/explain.py": NO_INTERVAL + "how far a number of other samples may lie",
    "conventions/search.py": NO_INTERVAL + "how far the number of a part of the samples may lie",
    "findings/equal_shares.py": NO_INTERVAL + "a test of whether less than all of a difference is left",
    "findings/visible.py": NO_INTERVAL + "what would have been seen",
    "gates/evidence.py": "an `Estimate` at any level, and with other numbers of samples",
    "gates/scores.py": NO_INTERVAL + "a margin for the noise of a baseline",
    "gates/shares.py": EXACT + ", with the noise of training",
    "judges/asked_again.py": NO_INTERVAL + "how much wider few repeats of a judge make an interval",
    "judges/power.py": NO_INTERVAL + "what is detectable",
    "judges/prediction_powered.py": NO_INTERVAL + "whether a judge orders and scores models as people do",
    "measures/histograms.py": NO_INTERVAL + "the test of NDB in each bin, as published",
    "measures/score.py": "the error behind an interval that is known",
    "memorization/copying.py": "ranks of the ends of a median, which are binomial",
    "monitoring/evidence/change_points.py": EXACT + ", and means by their own error",
    "monitoring/exchange.py": NO_INTERVAL + "a score of ranks",
    "monitoring/fixed/prompts.py": "the t interval of the mean difference of pairs",
    "monitoring/fixed/ranks.py": NO_INTERVAL + "a score of ranks",
    "monitoring/seen.py": NO_INTERVAL + "a score of repeats",
    "monitoring/needed.py": NO_INTERVAL + "numbers of samples",
    "numerics/attack_statistics.py": "Newcombe's interval of an AUC, whose error is that at its ends",
    "numerics/blocks.py": EXACT,
    "partitions/difference.py": "the total variation has a corner at 0, where influences of samples are not defined",
    "partitions/tests.py": EXACT,
    "private/dp/gaussian_mechanism.py": NO_INTERVAL + "the noise of privacy",
    "private/dp/guarantee.py": NO_INTERVAL + "what an attack can reach",
    "private/reference/gate.py": NO_INTERVAL + "what is detectable, and a first limit",
    "private/synthesis/utility.py": "paired shares, with half a record more in each outcome",
    "private/reference/mean_distance.py": "an interval whose error depends on the truth, and the law of the noise",
}


def test_nobody_else_takes_quantiles_of_errors():
    package = Path(finc_eval.__file__).parent
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if QUANTILE.search(path.read_text("utf-8"))
    }
    assert found == OWNERS | set(OTHERS)
