"""Two models on the same prompts: false discoveries of equal models, and the faults of the toy.

*Equal* models draw images of one law for each prompt: its middle, of so many units between prompts, plus noise of one
unit within a prompt, in 8 dimensions. *Skewed*: the noise is log-normal, and sets have unlike numbers of images of a
prompt. *A kind*, *overall*, *a word*: one is significant at .05. *The toy*: words and
colored digits (`finc_eval.demo.prompts`) as pixels; one model draws ones for sevens, blue for purple, and one picture
of each pink prompt. *All three faults*: these words are found. *Other words*: another one is.
"""

import numpy as np
from _record import record
from _runs import rate, run

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.demo.prompts import FAULTS, prompted_sets
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.blocks import pair
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.prompts.table import prompt_differences

EQUAL = {
    "40 prompts, 16 + 16, effect 3": (40, 16, 16, 3.0),
    "100 prompts, 4 + 4, effect 0": (100, 4, 4, 0.0),
    "100 prompts, 4 + 4, effect 1": (100, 4, 4, 1.0),
    "100 prompts, 4 + 4, effect 5": (100, 4, 4, 5.0),
    "200 prompts, 4 + 1, effect 3": (200, 4, 1, 3.0),
    "1000 prompts, 1 + 1, effect 3": (1000, 1, 1, 3.0),
    "100 prompts, 4 + 1, skewed": (100, 4, 1, 3.0),
    "100 prompts, 1 to 8 each, skewed": (100, (1, 8), (1, 8), 3.0),
}
TOY = {"toy, 200 prompts, 4 + 4": (200, 4), "toy, 50 prompts, 2 + 2": (50, 2)}


def equal_models(prompts, first, second, effect, rng, *, is_skewed=False):
    middles = rng.normal(size=(prompts, 8)) * effect
    words = rng.integers(0, 10, (prompts, 2))
    names = [f"w{one} v{other} {place}" for place, (one, other) in enumerate(words)]
    found = []
    for each in (first, second):
        each = rng.integers(each[0], each[1] + 1, prompts) if isinstance(each, tuple) else each
        of = np.repeat(np.arange(prompts), each)
        noise = rng.lognormal(size=(len(of), 8)) if is_skewed else rng.normal(size=(len(of), 8))
        rows = (middles[of] + noise).astype(np.float32)
        found.append(fe.EmbeddingSet(rows, metadata={"prompt": [names[one] for one in of]}))
    return dict(zip(("gen", "ref"), found, strict=True))


def words_of(sets, seed):
    pairing, _ = pair(sets, "prompt")
    tree = KindTree.of_sets(pairing.fitted_to, seed, Run())
    return {one.text for one in prompt_differences(pairing, tree, seed, Run()).words}


def one(regime, seed):
    rng = np.random.default_rng([seed, len(regime)])
    if regime in TOY:
        both = prompted_sets(*TOY[regime], seed=seed)
        sets = {
            label: fe.EmbeddingSet(one.rows, metadata={"prompt": one.prompts})
            for label, one in zip(("gen", "ref"), both, strict=True)
        }
    else:
        sets = equal_models(*EQUAL[regime], rng, is_skewed="skewed" in regime)
    found, words = fe.kinds(sets, pairs="prompt", seed=seed), words_of(sets, seed)
    figures = {"kind": bool(found.significant()), "overall": found.difference_p_value <= ALPHA, "word": bool(words)}
    if regime in TOY:
        figures |= {"found": words >= set(FAULTS), "others": bool(words - set(FAULTS))}
    return figures


def report(found):
    rows = [
        {
            "regime": regime,
            "a kind": rate(runs, "kind"),
            "overall": rate(runs, "overall"),
            "a word": rate(runs, "word"),
            "all three faults": rate(runs, "found"),
            "other words": rate(runs, "others"),
        }
        for regime, runs in found.items()
    ]
    record("paired_prompts", rows, "runs with a finding, of all runs, with 95 % intervals")


if __name__ == "__main__":
    run("paired_prompts", (*EQUAL, *TOY), one, report, {**dict.fromkeys(EQUAL, 80), **dict.fromkeys(TOY, 40)})
