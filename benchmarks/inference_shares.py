"""Are the shares of modes right, and do their intervals hold?

The designs of `inference_power.py`, and pairs of one law. Two truths: the share of the planted *class* in each set, for
the most significant mode of every class found; and the *operational* share of a mode, which is that of its members
among fresh samples of the same law, by what either half tells. Fresh samples are as many as the law gives of every
kind, weighted by the shares of the kinds in a set, and intervals are widened by two standard errors of that estimate.
A run holds if all intervals of all its modes hold.

Beside the share is what the simpler rule of half a typical score, c/2, counts on the same direction; of a cluster, its
own samples.
"""

from contextlib import ExitStack
from functools import partial
from math import ceil
from unittest.mock import patch

import numpy as np
import torch
from _designs import clusters, digits, judge, nothing, photographs, real, six
from _record import record
from _runs import rate, run
from inference_null import TIGHT, ZIPF
from inference_power import ALPHA, SIX, SMALL

import finc_eval as fe
from finc_eval.comparison import assemble, compare
from finc_eval.comparison.members import thresholds
from finc_eval.comparison.members.thresholds import BINS
from finc_eval.comparison.scored import ScoredProposal

FEATURES = 2000
PORTION = 4096
"""Fresh rows that are scored together."""
GAUSS, LOOSE = partial(clusters, 26, 512), partial(clusters, 26, 512, centers=0.35)
PHOTOGRAPHS, DIGITS = partial(real, photographs), partial(real, digits)
PLANTED = {
    "gauss-six": (GAUSS, (2000, 2000), SIX),
    "loose-six": (LOOSE, (2000, 2000), SIX),
    "gauss-six-300-5000": (GAUSS, (300, 5000), SIX),
    "photographs-six": (PHOTOGRAPHS, (1500, 1500), SIX),
    "photographs-small": (PHOTOGRAPHS, (1500, 1500), SMALL),
    "digits-six": (DIGITS, (2000, 2000), SIX),
    "digits-small": (DIGITS, (2000, 2000), SMALL),
}
EQUAL = {
    "tight-1000-1000": (TIGHT, (1000, 1000)),
    "tight-100-5000": (TIGHT, (100, 5000)),
    "zipf-500-10000": (ZIPF, (500, 10_000)),
}
BEFORE = {
    "photographs-six": (".60", ".0231", ".054"),
    "digits-six": (".52", ".0312", ".061"),
    "gauss-six": (".82", ".0106", ""),
    "loose-six": (".64", ".0214", ""),
}
"""Commit dad085e: median of excess frequency over truth, its error, and the error of the mass as a set's share."""


def one(regime, seed):
    rng = np.random.default_rng(seed)
    if regime in PLANTED:
        law, sizes, changes = PLANTED[regime]
        source = law()(rng)
        sets = six(source, sizes, **changes)
    else:
        law, sizes = EQUAL[regime]
        source = law()(rng)
        sets = nothing(source, rng, sizes)
    members = Recorded()
    with ExitStack() as stack:
        for one in members.recording():
            stack.enter_context(one)
        found = fe.compare(sets.gen.rows, sets.ref.rows, features=FEATURES, seed=seed)
    modes = sorted(found.significant(ALPHA), key=lambda mode: mode.p_value)
    kinds, _, _ = judge(sets, [(mode.role, mode.top_gen if mode.role == "over" else mode.top_ref) for mode in modes])
    rows, which = source.fresh()
    return {
        "classes": [
            against_class(modes[place], kind, sets) | {"own by half": members.by_half(modes[place])}
            for kind, place in kinds.items()
        ],
        "holds": all(members.hold(mode, rows, which, sets) for mode in found.modes) if found.modes else None,
    }


def against_class(mode, kind, sets):
    """Return what the mode says of its class, and the truth."""
    own, other = sets.shares if mode.role == "over" else sets.shares[::-1]
    low, high = mode.share_difference_interval
    return {
        "own": mode.share_gen if mode.role == "over" else mode.share_ref,
        "own truth": own[kind],
        "difference": abs(mode.share_difference),
        "difference truth": own[kind] - other[kind],
        "covered": bool(low <= sets.shares[0][kind] - sets.shares[1][kind] <= high),
        "found by": mode.found_by,
    }


class Recorded:
    """Who is a member of which mode, recorded while a comparison is made.

    A result keeps what tells members by all data, and shares are counted by what either half tells.
    """

    def __init__(self):
        self.candidates, self._fresh = {}, {}

    def recording(self):
        """Return contexts in which a comparison is recorded."""
        make, score, find = assemble._mode, compare.score_sets, compare.find_kinds

        def mode(candidate, *arguments):
            made = make(candidate, *arguments)
            self.candidates[made.id] = candidate
            return made

        def scored(*arguments, **named):
            self.scored = score(*arguments, **named)
            return self.scored

        def kinds(*arguments):
            self.kinds = find(*arguments)
            return self.kinds

        return (
            patch.object(assemble, "_mode", mode),
            patch.object(compare, "score_sets", scored),
            patch.object(compare, "find_kinds", kinds),
        )

    def by_half(self, mode):
        """Return the share of the set that has more beyond half a typical score; of a cluster, that in the cluster."""
        candidate = self.candidates[mode.id]
        proposal, (own, _) = candidate.scored, candidate.sets
        if candidate.threshold is None:
            kind = self.kinds.of(own.sketched.label)[candidate.rank]
            return kind.members[own.sketched.label].count / own.sketched.sketch.n
        with patch.multiple(thresholds, LEAST=0.5, MOST=0.5):
            least = ScoredProposal(proposal.proposal, proposal.columns, proposal.sets).thresholds[:, candidate.rank]
        return (
            sum(own.scores.beyond(fold, candidate.column, float(one)) for fold, one in enumerate(least)) / own.scores.n
        )

    def hold(self, mode, rows, which, sets):
        """Return whether the three intervals of a mode hold what fresh rows say."""
        truths, errors = zip(*(self.share(mode, rows, which, label, sets) for label in ("gen", "ref")), strict=True)
        return all(
            low - 2 * error <= truth <= high + 2 * error
            for (low, high), truth, error in (
                (mode.share_gen_interval, truths[0], errors[0]),
                (mode.share_ref_interval, truths[1], errors[1]),
                (mode.share_difference_interval, truths[0] - truths[1], float(np.hypot(*errors))),
            )
        )

    def share(self, mode, rows, which, label, sets):
        """Return the share of a mode in the law of a set, and its standard error."""
        weights = sets.shares[label == "ref"]
        part = self.member(self.candidates[mode.id], torch.from_numpy(rows), label)
        counts = np.bincount(which, minlength=len(weights))
        inside = np.bincount(which, part, len(weights))
        rates = inside / np.maximum(counts, 1)
        # None of 1000 is not known to be none.
        spread = (inside + 1) / (counts + 2)
        error = weights**2 * spread * (1 - spread) / np.maximum(counts, 1)
        return float(weights @ rates), float(np.sqrt(error.sum()))

    def member(self, candidate, rows, label):
        """Return the probability that each row counts as a member, (n,): rows fall in either fold of the set."""
        one = self.scored.sets[label]
        if one.told_members(candidate.column) is None and candidate.threshold is None:
            pieces = list(self.kinds.of(candidate.scored.proposal.own)[candidate.rank].pieces)
            cells, _ = self.kinds.partition.assign(rows)
            tests = self.kinds.tests
            return (cells[:, tests.level[pieces]] == tests.index[pieces]).any(1).astype(float)
        inside, sketch = np.zeros(len(rows)), one.sketched.sketch
        for fold in (0, 1):
            told, scores = self.fresh(rows, fold)
            if one.told_members(candidate.column):
                found = told[:, candidate.column]
            else:
                threshold = float(candidate.scored.thresholds[fold, candidate.rank])
                # A histogram rounds thresholds up.
                least = 2 * ceil((abs(threshold) + 1) * (BINS / 2)) / BINS - 1
                found = np.copysign(1, threshold) * scores[:, candidate.column] >= least
            inside += found.numpy() * sketch.folds[fold].n / sketch.n
        return inside

    def fresh(self, rows, fold):
        """Return which fresh rows are members of which modes, and their scores: both (n, t), found once."""
        if fold not in self._fresh:
            scoring = torch.cat([one.proposal.fit.scoring[fold] for one in self.scored.proposals], 1)
            phi = next(iter(self.scored.sets.values())).sketched.sketch.feature_map
            told, scores = zip(
                *((self.scored.members.among(part, fold), phi(part) @ scoring) for part in torch.split(rows, PORTION)),
                strict=True,
            )
            self._fresh[fold] = torch.cat(told), torch.cat(scores)
        return self._fresh[fold]


def report(found):
    record(
        "inference_shares",
        [row(regime, runs) for regime, runs in found.items()],
        f"r = {FEATURES}; errors are means over the classes found, as fractions of a set; before: excess frequency and "
        "mass at commit dad085e",
    )


def row(regime, runs):
    classes = [one for run in runs for one in run["classes"]]
    column = {key: np.array([one[key] for one in classes]) for key in (classes[0] if classes else ())}

    def shown(function, *keys):
        return f"{function(*(column[key] for key in keys)):.4f}" if classes else ""

    ratio, error, own = BEFORE.get(regime, ("", "", ""))
    return {
        "design": regime,
        "runs": len(runs),
        "classes found": len(classes),
        "difference / truth, median": shown(lambda a, b: np.median(a / b), "difference", "difference truth"),
        "error of the difference": shown(lambda a, b: np.abs(a - b).mean(), "difference", "difference truth"),
        "error of a set's own share": shown(lambda a, b: np.abs(a - b).mean(), "own", "own truth"),
        "that error with c/2": shown(lambda a, b: np.abs(a - b).mean(), "own by half", "own truth"),
        "before: these three": f"{ratio} / {error} / {own}" if ratio else "",
        "interval holds the class": f"{int(sum(column['covered']))}/{len(classes)}" if classes else "",
        "all operational shares hold": rate(runs, "holds"),
    }


if __name__ == "__main__":
    run(
        "inference_shares", [*PLANTED, *EQUAL], one, report, {**dict.fromkeys(PLANTED, 12), **dict.fromkeys(EQUAL, 100)}
    )
