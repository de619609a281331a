"""Two models on the same prompts: false discoveries of equal models, and the faults of the toy.

*Equal* models draw images of one law for each prompt: its middle, of so many units between prompts, plus noise of one
unit within a prompt, in 8 dimensions. *Skewed*: the noise is log-normal, and sets have unlike numbers of images of a
prompt. *Rare words*: a word is in three prompts on average, the fewest that are tested. *A kind*, *overall*, *a word*:
one is significant at .05. *The toy*: words and colored digits (`finc_eval.demo.prompts`) as pixels; one model draws
ones for sevens, blue for purple, and one picture of each pink prompt. *All three faults*: these words are found. *A
fault first*: the first word of the table is, or has, such a word. *Other words*: draws with a word or phrase that holds
none of the three; *all prompts* does not count as a word. *Gate*: a policy of `pairs = "prompt"` and `kinds.moved =
0.05`. *All equal models*: all of their runs together.
"""

import numpy as np
from _record import Runs, claim, record
from _runs import rate, run

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.demo.prompts import FAULTS, prompted_sets
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.blocks import pair
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.prompts.table import prompt_differences

EQUAL = {
    "40 prompts, 1 + 1, effect 3": (40, 1, 1, 3.0),
    "40 prompts, 16 + 16, effect 3": (40, 16, 16, 3.0),
    "50 prompts, 2 + 2, effect 1": (50, 2, 2, 1.0),
    "200 prompts, 4 + 4, effect 0": (200, 4, 4, 0.0),
    "200 prompts, 4 + 4, effect 5": (200, 4, 4, 5.0),
    "2000 prompts, 1 + 1, effect 3": (2000, 1, 1, 3.0),
    "100 prompts, 4 + 1, skewed": (100, 4, 1, 3.0),
    "100 prompts, 1 to 8 each, skewed": (100, (1, 8), (1, 8), 3.0),
    "90 prompts, 16 + 1 or 2, skewed, rare words": (90, 16, (1, 2), 3.0),
}
GATED = "toy, 200 prompts, 4 + 4"
SOUND = "toy without faults, 50 prompts, 2 + 2"
TOY = {SOUND: (50, 2), GATED: (200, 4), "toy, 50 prompts, 2 + 2": (50, 2)}
AGAIN = 10_000
"""Step of the seed to another release without faults, on the same 200 prompts."""

ALL = "all equal models"


def equal_models(prompts, first, second, effect, rng, *, is_skewed=False, vocabulary=10):
    middles = rng.normal(size=(prompts, 8)) * effect
    words = rng.integers(0, vocabulary, (prompts, 2))
    names = [f"w{one} v{other} {place}" for place, (one, other) in enumerate(words)]
    found = []
    for each in (first, second):
        each = rng.integers(each[0], each[1] + 1, prompts) if isinstance(each, tuple) else each
        of = np.repeat(np.arange(prompts), each)
        noise = rng.lognormal(size=(len(of), 8)) if is_skewed else rng.normal(size=(len(of), 8))
        rows = (middles[of] + noise).astype(np.float32)
        found.append(fe.EmbeddingSet(rows, metadata={"prompt": [names[one] for one in of]}))
    return dict(zip(("gen", "ref"), found, strict=True))


def toy(prompts, each, seed, *, faults):
    both = zip(("gen", "ref"), prompted_sets(prompts, each, seed, faults=faults), strict=True)
    return {label: fe.EmbeddingSet(one.rows, metadata={"prompt": one.prompts}) for label, one in both}


def words_of(sets, seed):
    """Return the words that differ, in the order of the table."""
    pairing, _ = pair(sets, "prompt")
    tree = KindTree.of_sets(pairing.fitted_to, seed, Run())
    return [one.text for one in prompt_differences(pairing, tree, seed, Run()).words]


def one(regime, seed):
    rng = np.random.default_rng([seed, len(regime)])
    if regime in TOY:
        sets = toy(*TOY[regime], seed, faults=regime != SOUND)
    else:
        vocabulary = 30 if "rare" in regime else 10
        sets = equal_models(*EQUAL[regime], rng, is_skewed="skewed" in regime, vocabulary=vocabulary)
    found, words = fe.kinds(sets, pairs="prompt", seed=seed), words_of(sets, seed)
    figures = {"kind": bool(found.significant()), "overall": found.difference_p_value <= ALPHA, "word": bool(words)}
    if regime in TOY and regime != SOUND:
        others = [not set(FAULTS) & set(word.split()) for word in words if word]
        figures |= {
            "found": set(FAULTS) <= set(words),
            "first": bool(words) and bool(set(FAULTS) & set(words[0].split())),
            "others": any(others),
            "all": "" in words,
        }
    if regime == GATED:
        again = toy(*TOY[regime], seed + AGAIN, faults=False)["gen"]
        for name, release in (("fails", sets["gen"]), ("fails, equal", again)):
            verdict = fe.gate(release, sets["ref"], sets["ref"], {"pairs": "prompt", "kinds": {"moved": 0.05}})
            figures[name] = verdict.overall == "regression"
    return figures


def report(found):
    equal = [run for regime, runs in found.items() if regime in EQUAL or regime == SOUND for run in runs]
    rows = [
        {
            "regime": regime,
            "a kind": rate(runs, "kind"),
            "overall": rate(runs, "overall"),
            "a word": rate(runs, "word"),
            "all three faults": rate(runs, "found"),
            "a fault first": rate(runs, "first"),
            "other words": rate(runs, "others"),
            "all prompts": rate(runs, "all"),
            "gate fails": rate(runs, "fails"),
            "gate fails without faults": rate(runs, "fails, equal"),
        }
        for regime, runs in {**found, ALL: equal}.items()
        if runs
    ]
    claim({ALL: Runs(len(equal), 0)})
    record("paired_prompts", rows, "runs with a finding, of all runs, with 95 % intervals")


if __name__ == "__main__":
    run(
        "paired_prompts",
        (*EQUAL, *TOY),
        one,
        report,
        {**dict.fromkeys(TOY, 100), **dict.fromkeys((*EQUAL, SOUND), 200)},
    )
