"""The judge of the benchmark of differences: it needs the truth and an answer, and no language model.

A *claim* is a difference of an answer whose p-value is missing or at most .05. The first ten claims and the planted
differences are matched one to one, by the skill with which the listed samples are the planted ones. A claim that is
left over and whose samples are those of a planted difference follows from it. Any other claim with samples is false,
and in a case of equal sets, each claim is.
"""

import re
from dataclasses import asdict, dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

LEVEL = 0.05  # largest p-value of a claim
FOUND = 0.5  # least skill of a difference that is found: half of the way from chance to a perfect list
FOLLOWS = 0.25  # least skill of a claim that follows from a planted difference
FEWEST = 5  # samples that a list must show for a full score, or all planted ones
MOST_CLAIMS = 10  # first claims that are matched: without it, 3,000 random lists of five "found" .86 of seed 1, now .02
WIDEST = 0.5  # width of an interval of a share that says something
NEAR = (0.03, 0.4)  # error up to which a share without an interval is right: absolute, or a part of the true share


@dataclass(frozen=True)
class Planted:
    """A difference of two sets that is known.

    Attributes:
        side: the set that has more of it, "gen" or "ref"; "either" where each set has what the other has not.
        ids: all samples that show it, such as "gen/0004.png".
        share: share of the samples of that set, beyond the share in the other set.
        words: regular expression of what people call it.
        follows: regular expression of what follows from it, and is not its name.
    """

    side: str
    ids: tuple
    share: float
    words: str
    follows: str = "$^"


@dataclass(frozen=True)
class Verdict:
    """Scores of an answer to one case.

    Attributes:
        found, side, share, words: parts of the planted differences that are found; and with the right side, share and
            words. All are 0 of what is not found, and None for equal sets.
        clean: 1 if no claim is false, else 0.
        claims, consequences, false: numbers of claims, of those that follow from a planted difference, of false ones.
    """

    found: float | None
    side: float | None
    share: float | None
    words: float | None
    clean: float
    claims: int
    consequences: int
    false: int

    def scores(self):
        return {name: value for name, value in asdict(self).items() if isinstance(value, float)}


def judge(planted, answer, sizes):
    """Judge the answer to a case.

    Args:
        planted: list of `Planted`; empty for sets of one law.
        answer: list of differences, as dicts: `ids` (the clearest first), `side`, `share` or `interval`, and optionally
            `words` and `p_value`.
        sizes: number of samples of each set, by "gen" and "ref".
    """
    claims = [claim for claim in answer if claim.get("p_value") is None or claim["p_value"] <= LEVEL]
    if not planted:
        return Verdict(None, None, None, None, float(not claims), len(claims), 0, len(claims))
    skills = np.array([[skill(claim.get("ids", ()), each, sizes) for claim in claims] for each in planted])
    skills = skills.reshape(len(planted), len(claims))
    pairs = [(each, claim) for each, claim in zip(*linear_sum_assignment(-skills[:, :MOST_CLAIMS]), strict=True)]
    pairs = [(each, claim) for each, claim in pairs if skills[each, claim] >= FOUND]
    rights = np.zeros((len(planted), 4))
    for each, claim in pairs:
        rights[each] = 1.0, *parts_right(planted[each], claims[claim])
    matched = {claim for _, claim in pairs}
    others = [number for number in range(len(claims)) if number not in matched and claims[number].get("ids")]
    false = sum(skills[:, number].max() < FOLLOWS for number in others)
    found = rights.mean(0).tolist()
    return Verdict(*found, float(false == 0), len(claims), len(others) - int(false), int(false))


def parts_right(each, claim):
    """Return whether the side, the share and the words of a claim are right."""
    is_side = each.side in ("either", claim.get("side"))
    is_named = re.search(each.words, claim.get("words") or "", re.IGNORECASE) is not None
    return is_side, is_side and is_share(each.share, claim), is_named


def is_share(share, claim):
    """Return whether a claim has the right share: its interval, at most `WIDEST` wide, contains the true share.

    A claim without an interval is right if its share is near the true share.
    """
    if claim.get("interval") is not None:
        low, high = claim["interval"]
        return low <= share <= high and high - low <= WIDEST
    return claim.get("share") is not None and abs(claim["share"] - share) <= max(NEAR[0], NEAR[1] * share)


def skill(ids, each, sizes):
    """Return the average precision of a list, on the scale from chance, 0, to a perfect list, 1.

    The mean is over the planted samples, or over as many as are listed, but over `FEWEST` at least. Chance is the part
    of planted samples in the sets of as many of the first listed ones.
    """
    truth, listed = set(each.ids), list(dict.fromkeys(ids))
    if not listed:
        return 0.0
    right = np.array([name in truth for name in listed], float)
    precision = right.cumsum() / np.arange(1, len(right) + 1)
    most = max(min(len(listed), len(truth)), min(FEWEST, len(truth)))
    rates = {label: sum(name.startswith(f"{label}/") for name in truth) / n for label, n in sizes.items()}
    chance = float(np.mean([rates.get(name.partition("/")[0], 0.0) for name in listed[:most]]))
    return (float((precision * right)[: len(right)].sum()) / most - chance) / (1 - chance) if chance < 1 else 0.0
