"""Does a comparison see forty faults that nobody tuned by, and is "at least" never above what was planted?

    python benchmarks/local_faults.py [faults | least] [--regime … --jobs …]

A fault of `_unseen_faults.py` is drawn into a share of the generated photographs of 64 pixels; regimes are the sizes of
both sets. *faults*: whole comparisons. A fault is *silent* if the headline claims nothing; its *pictures* are shown if
at least half of the examples of something that is said have the fault. *least*: parts that the test of local evidence
says, of every fault in 5, 12 and 25 % of the pictures. A lower bound is *above* if more is said than was planted.
"""

import re
import sys
from functools import cache
from itertools import product

import numpy as np
from _pool import Drawn, embedded, files_64, opened, pool
from _record import record
from _runs import rate, run
from _unseen_faults import UNSEEN
from first_sentence import remember_pictures

import finc_eval as fe
from finc_eval.comparison.headline import keys_of, says
from finc_eval.findings.local import find_parts

SIZES = {"150 v 150": (150, 150), "300 v 300": (300, 300), "1000 v 300": (1000, 300)}
NOTHING = "The sets do not differ"  # how a headline begins that claims nothing
CHANGED = 300  # photographs with each fault: 30 % of 1 000
SHARES = (0.05, 0.12, 0.25)
LEAST = [*product(UNSEEN, SHARES)]
LOWER = re.compile(r"[Aa]t least (\d+(?:\.\d+)?) %")


@cache
def changed(name):
    """Return some photographs with a fault, embedded, and the rows of the pool of photographs that they are of."""
    number = [*UNSEEN].index(name)
    rows = np.random.default_rng([76, number]).permutation(pool("photographs").n)[:CHANGED]

    def images():
        for row in rows.tolist():
            yield UNSEEN[name][0](opened(files_64()[0][row]), np.random.default_rng([76, number, row]))

    return embedded(f"fault {number}", images), rows


def planted(name, share, sizes, rng):
    """Return both sets, a fault in the first samples of the generated set, and the number of these."""
    (n, m), count = sizes, round(share * sizes[0])
    faulty, sources = changed(name)
    others = rng.permutation(np.setdiff1d(np.arange(pool("photographs").n), sources))[: n + m - count]
    own, rest = np.split(others, [n - count])
    gen = Drawn([(faulty, rng.permutation(CHANGED)[:count]), (pool("photographs"), own)])
    return gen, Drawn([(pool("photographs"), rest)]), count


def whole(regime, seed):
    """Compare sets, and return what is said of a fault, and the lower bounds in percent that are above its share."""
    remember_pictures()
    name, (_, share) = [*UNSEEN.items()][seed]
    gen, ref, count = planted(name, share, SIZES[regime], np.random.default_rng([seed, *SIZES[regime]]))
    found, have = fe.compare(gen, ref), {*gen.ids_between(0, count)}
    told, truth = says(found), 100 * count / gen.n
    said = [finding for finding, key in keys_of(found).items() if key in told]
    right = [bool(each.ids) and np.mean([one in have for one in each.ids]) >= 0.5 for each in said]
    bounds = [float(bound) for bound in LOWER.findall(found.headline)]
    return {
        "fault": name,
        "planted": truth,
        "silent": found.headline.startswith(NOTHING),
        "pictures": any(right),
        "bounds": bounds,
        "above": [bound for bound in bounds if bound > truth],
        "local": found.local_p_value,
        "sets": found.sets_p_value,
        "said": [f"{each.kind}: {each.name}" for each in said],
        "parts": [[part.kind, part.side, part.at_least, part.p_value] for part in found.parts],
        "headline": found.headline,
    }


def least(regime, seed):
    """Return the lower bounds, in percent, of the parts that are said of a fault."""
    remember_pictures()
    name, share = LEAST[seed]
    gen, ref, count = planted(name, share, SIZES[regime], np.random.default_rng([seed, *SIZES[regime], 1]))
    found = find_parts({"gen": gen, "ref": ref}, seed=seed)
    bounds = [100 * max(held.finding.shares) for held in found.held() if not held.finding.whole]
    return {"fault": name, "planted": 100 * count / gen.n, "bounds": bounds, "local": found.p_value}


def of_parts(runs):
    """Return runs with the lower bounds, in percent, of the parts that are said or follow from something said."""
    return [
        {
            "planted": each["planted"],
            "bounds": [
                100 * bound
                for kind, _, bound, p_value in each["parts"]
                if kind != "pairs" and bound is not None and bound >= 0.01 and max(p_value, each["local"]) <= 0.0125
            ],
        }
        for each in runs
    ]


def above(runs):
    """Return how many of all bounds are above what was planted."""
    return rate([{"above": bound > each["planted"]} for each in runs for bound in each["bounds"]], "above")


def report_whole(found):
    rows = [
        {
            "sets": regime,
            "silent": rate(runs, "silent"),
            "pictures shown": rate(runs, "pictures"),
            "“at least” above": above(runs),
            "parts above": above(of_parts(runs)),
            "local p ≤ .0125": rate([{"found": each["local"] <= 0.0125} for each in runs], "found"),
            "sets p ≤ .0125": rate([{"found": each["sets"] <= 0.0125} for each in runs], "found"),
        }
        for regime, runs in found.items()
    ]
    record("local_faults", rows, "Photographs of 64 pixels; forty faults, in 10 to 30 %, one draw each.")
    each = {name: {"fault": name, "planted": f"{share:.0%}"} for name, (_, share) in UNSEEN.items()}
    for regime, runs in found.items():
        for one in runs:
            told = "silent" if one["silent"] else "; ".join(one["said"]) or "sets"
            each[one["fault"]] |= {regime: f"{told}{'' if one['pictures'] or one['silent'] else ' (other pictures)'}"}
            each[one["fault"]] |= {f"headline, {regime}": one["headline"]}
    record("local_faults_each", [*each.values()], "What is said of each fault: kinds and names of findings.")


def report_least(found):
    rows = []
    for regime, runs in found.items():
        for share in SHARES:
            own = [each for place, each in enumerate(runs) if LEAST[each["seed"]][1] == share]
            bounds = [bound / each["planted"] for each in own for bound in each["bounds"]]
            rows.append(
                {
                    "sets": regime,
                    "planted": f"{share:.0%}",
                    "draws": len(own),
                    "parts said": len(bounds),
                    "above": above(own),
                    "median of bound / planted": f"{np.median(bounds):.2f}" if bounds else "",
                }
            )
    every = [each for runs in found.values() for each in runs]
    rows.append({"sets": "all", "draws": len(every), "parts said": sum(len(each["bounds"]) for each in every)}
                | {"above": above(every)})  # fmt: skip
    record("local_faults_least", rows, "Lower bounds of parts that are said, of forty faults each.")


PARTS = {
    "faults": ("local_faults", SIZES, whole, report_whole, len(UNSEEN)),
    "least": ("local_faults_least", SIZES, least, report_least, len(LEAST)),
}

if __name__ == "__main__":
    part = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1] in PARTS else "faults"
    run(*PARTS[part])
