"""False failures of the gate, and its power at the sizes that it prints.

Releases are drawn from mixtures of 20 kinds with unequal shares, in 16 dimensions. The limits are the least favorable
ones: no kind may lose anything worth naming (1 % of its share), none may grow that the reference lacks, and the Fréchet
distance may not rise. So every significant change is a failure, and the rate of failures of releases without a change
is the error of the whole family.

*unchanged*: three draws of one mixture. *small*: 500 new samples and 500 old ones against 10 000 of the reference.
*margin*: every second kind has lost exactly what the limit allows, a half. *prompts*: four samples of each of 250
prompts, two in three of the prompt's own kind; judged with the groups and without. *windows*: four samples of one kind
a video, told by ids. *retrained*: shares that move from training to training three times as much as samples do, with
three replicates of the baseline and with one. *looks*: three looks at more and more samples.

*lost*, *new*, *worse*: a labelled kind has lost, an unlabelled one has come, or the Fréchet distance has risen by the
size that the gate prints as detectable for an unchanged release, at limits of one half, 2 % and the measured noise.
*gone*: a whole kind of 2.5 to 7.5 % of the samples is lost, and kinds are to show it; *gone-by-init*: of
1 000 samples, one of 10 % is lost, judged by the policy of `--init`: it must not pass. *new-twice*,
*new-small-twice*: a new kind of twice the detectable size. *new-small*: 500 new and old samples against 10 000 of the
reference. *new-prompts*: four samples of each of 250 prompts, judged by prompts.
"""

import tomllib
from functools import partial

import numpy as np
from _record import record
from _runs import rate, run

import finc_eval as fe
from finc_eval.gates.first_policy import first_policy

RUNS, POWER_RUNS, DIM, KINDS, SPREAD = 1000, 200, 16, 20, 3.0
SHARES = np.linspace(1, 3, KINDS) / np.linspace(1, 3, KINDS).sum()
STRICT = {"kinds": {"lose": 0.01, "new": 0.001}, "metrics": {"fd": {"difference": 0.001}}}
USUAL = {"kinds": {"lose": 0.5, "new": 0.02}, "metrics": {"fd": {"difference": "noise"}}}


class World:
    """A mixture: centers of the kinds, and one more that is new."""

    def __init__(self, rng):
        self.rng, self.centers = rng, rng.normal(0, 1.5, (KINDS + 1, DIM))

    def rows(self, kinds):
        return (self.centers[kinds] + 0.5 * self.rng.normal(size=(len(kinds), DIM))).astype(np.float32)

    def kinds(self, n, shares=SHARES):
        return self.rng.choice(len(shares), n, p=shares / shares.sum())

    def release(self, n, shares=SHARES):
        return self.rows(self.kinds(n, shares))

    def asked(self, n, each, shares=SHARES):
        """Draw so many samples of each prompt, two in three of them of the prompt's own kind."""
        own = np.repeat(self.kinds(n // each, shares), each)
        kinds = np.where(self.rng.random(n) < 2 / 3, own, self.kinds(n, shares))
        return fe.EmbeddingSet(self.rows(kinds), metadata={"prompt": [str(i // each) for i in range(n)]})


def failed(verdict):
    return {"false": verdict.overall == "regression", "limits": len(verdict.limits)}


def unchanged(n, m, seed):
    world = World(np.random.default_rng(seed))
    return failed(fe.gate(world.release(n), world.release(n), world.release(m), STRICT))


def margin(seed):
    world = World(np.random.default_rng(seed))
    shares = SHARES.copy()
    few = np.flatnonzero(np.arange(KINDS) % 2)
    # What they have lost goes to the others, so that each has exactly half of its share.
    shares[few] /= 2
    shares[np.arange(KINDS) % 2 == 0] *= (1 - shares[few].sum()) / SHARES[np.arange(KINDS) % 2 == 0].sum()
    policy = {"kinds": {"lose": 0.5, "column": "kind"}}
    sets = [world.kinds(2000, one) for one in (shares, SHARES, SHARES)]
    told = [fe.EmbeddingSet(world.rows(k), metadata={"kind": [f"k{one}" for one in k]}) for k in sets]
    return failed(fe.gate(*told, policy))


def prompts(grouped, windows, seed):
    world = World(np.random.default_rng(seed))

    def asked(n, each=4):
        if not windows:
            return world.asked(n, each)
        ids = [f"clip{i // each}#{i % each}" if grouped else str(i) for i in range(n)]
        return fe.EmbeddingSet(world.rows(np.repeat(world.kinds(n // each), each)), ids)

    by = {"groups": "prompt"} if grouped and not windows else {}
    return failed(fe.gate(asked(1000), asked(1000), asked(4000), {"kinds": STRICT["kinds"], **by}))


def retrained(replicates, seed):
    world = World(np.random.default_rng(seed))
    n = 2000

    def trained():
        moved = SHARES * np.exp(SPREAD * world.rng.normal(size=KINDS) * np.sqrt((1 - SHARES) / (n * SHARES)))
        return world.release(n, moved / moved.sum())

    policy = {"kinds": STRICT["kinds"]}
    return failed(fe.gate(trained(), [trained() for _ in range(replicates)], world.release(4000), policy))


def looks(seed):
    world = World(np.random.default_rng(seed))
    new, old, ref = (world.release(n) for n in (3000, 3000, 4000))
    # A pipeline that draws more samples whenever the verdict is not a pass.
    verdicts = [
        fe.gate(new[:n], old[:n], ref, {"kinds": STRICT["kinds"], "interim": 3}).overall for n in (1000, 2000, 3000)
    ]
    return {"false": "regression" in verdicts}


def lost(seed):
    """Plant the detectable loss of a labelled kind."""
    world, policy = World(np.random.default_rng(seed)), {"kinds": {"lose": 0.5, "column": "kind"}}

    def told(n, shares=SHARES):
        kinds = world.kinds(n, shares)
        return fe.EmbeddingSet(world.rows(kinds), metadata={"kind": [f"k{kind}" for kind in kinds]})

    kind = int(world.rng.integers(KINDS))
    old, ref = told(2000), told(4000)
    limits = {one.name: one for one in fe.gate(told(2000), old, ref, policy).limits}
    name = f"kinds.lose kind=k{kind}"
    size = limits[name].detectable
    if size is None:
        return {"found": None, "size": np.nan}
    shares = SHARES.copy()
    # What it has lost goes to the others, so that its share is as much less as is said.
    shares *= (1 - (1 - size) * SHARES[kind]) / (1 - SHARES[kind])
    shares[kind] = (1 - size) * SHARES[kind]
    verdict = fe.gate(told(2000, shares), old, ref, policy)
    return {"found": name in [one.name for one in verdict.of("regressed")], "size": size}


def gone(seed):
    """Lose a whole kind, which no label shows."""
    world = World(np.random.default_rng(seed))
    shares = SHARES.copy()
    shares[world.rng.integers(KINDS)] = 0
    verdict = fe.gate(world.release(2000, shares), world.release(2000), world.release(4000), USUAL)
    return {"found": verdict.overall == "regression", "size": 1.0}


def by_init(seed):
    """Lose a kind of a tenth of the samples, judged by the policy of --init."""
    world = World(np.random.default_rng(seed))
    shares = SHARES.copy()
    shares[-1] = shares[:-1].sum() / 9
    old, ref = world.release(1000, shares), world.release(2000, shares)
    policy = tomllib.loads(first_policy([old], ref))
    verdict = fe.gate(world.release(1000, np.r_[shares[:-1], 0]), old, ref, policy)
    return {"passed": verdict.overall == "pass", "found": verdict.overall == "regression", "size": 0.1}


def new(n, m, times, each, seed):
    """Add a kind of so many times the detectable size, among single samples or among prompts of so many."""
    world = World(np.random.default_rng(seed))

    def drawn(n, shares=SHARES):
        return world.release(n, shares) if each == 1 else world.asked(n, each, shares)

    policy = {"kinds": {"new": USUAL["kinds"]["new"]}} | ({"groups": "prompt"} if each > 1 else {})
    old, ref = drawn(n), drawn(m)
    limits = fe.gate(drawn(n), old, ref, policy).limits
    size = times * max(one.detectable for one in limits if one.detectable is not None)
    verdict = fe.gate(drawn(n, np.r_[SHARES * (1 - size), size]), old, ref, policy)
    return {"found": verdict.overall == "regression", "passed": verdict.overall == "pass", "size": size}


def worse(seed):
    """Move all samples in a fresh direction until the Fréchet distance has risen by the detectable size."""
    world = World(np.random.default_rng(seed))
    policy = {"metrics": USUAL["metrics"]}
    old, ref = world.release(2000), world.release(4000)
    (limit,) = fe.gate(world.release(2000), old, ref, policy).limits
    direction = world.rng.normal(size=DIM)
    moved = world.release(2000) + (direction / np.linalg.norm(direction) * np.sqrt(limit.detectable)).astype(np.float32)
    return {"found": fe.gate(moved, old, ref, policy).overall == "regression", "size": limit.detectable}


REGIMES = {
    "unchanged": partial(unchanged, 2000, 4000),
    "small": partial(unchanged, 500, 10_000),
    "margin": margin,
    "prompts": partial(prompts, True, False),
    "prompts-naive": partial(prompts, False, False),
    "windows": partial(prompts, True, True),
    "windows-naive": partial(prompts, False, True),
    "retrained-3": partial(retrained, 3),
    "retrained-1": partial(retrained, 1),
    "looks": looks,
    "lost": lost,
    "gone": gone,
    "gone-by-init": by_init,
    "new": partial(new, 2000, 4000, 1, 1),
    "new-twice": partial(new, 2000, 4000, 2, 1),
    "new-small": partial(new, 500, 10_000, 1, 1),
    "new-small-twice": partial(new, 500, 10_000, 2, 1),
    "new-prompts": partial(new, 1000, 4000, 1, 4),
    "worse": worse,
}
POWER = ("lost", "gone", "gone-by-init", "new", "new-twice", "new-small", "new-small-twice", "new-prompts", "worse")


def one(regime, seed):
    return REGIMES[regime](seed)


def report(found):
    rows = [
        {
            "regime": regime,
            "runs": len(runs),
            "false failures": rate(runs, "false"),
            "passed": rate(runs, "passed"),
            "found": rate(runs, "found"),
            "size, median": f"{np.nanmedian([one['size'] for one in runs]):.3g}" if regime in POWER else "",
        }
        for regime, runs in found.items()
    ]
    record("gate", rows, "α = 0.05; 95 % intervals of Clopper and Pearson")


if __name__ == "__main__":
    run("gate", list(REGIMES), one, report, {name: POWER_RUNS if name in POWER else RUNS for name in REGIMES})
