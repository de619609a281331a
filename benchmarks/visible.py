"""Would faults have been seen of the share that "nothing found" says, and half of it in as many samples as it says?

    python benchmarks/visible.py [--regime … --runs … --jobs …]

Two sets of one law are drawn from photographs of 12 of 24 classes: n against m. What a comparison would say of them is
then planted in the generated set: *blur* of 1.6 pixels of 64, a class that it *lost*, *copies* of the reference. Found
are a look of this name, a significant kind with mostly samples of the class, and copies. "half" is half of the share in
sets of the same sizes, "half, more" in the sizes that are said to show it.

*gate-* and *board-* do so with what a gate says of a release that passes, n pictures against m of its baseline, and a
board of 5 models of one of them, n against m of the reference: found are findings that the headline of a gate names, or
faults that stay significant among 5 models.
"""

import numpy as np
from _designs import photographs
from _record import record
from _regimes import picture
from _runs import rate, run
from first_sentence import measure_once
from PIL import ImageFilter

import finc_eval as fe
from finc_eval.comparison.findings import clear_among, differences_between
from finc_eval.comparison.settings import Settings
from finc_eval.core.run import Run
from finc_eval.findings.copies import hold_copies
from finc_eval.findings.visible import OF_CLASS, RARER, smallest_copied, visible_among, visible_blur
from finc_eval.gates.verdict import CLEAR
from finc_eval.naming import measured
from finc_eval.naming.looks import find_looks
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.answer import divide

VERBS = ("gate", "board")
SIZES, RUNS = ((60, 60), (150, 150), (300, 300), (100, 400)), 40
SOFT = ("blur", "pixelated")  # how names of looks of blurred pictures begin
CLASSES = slice(12, None)  # classes, of 24, that judge; the first 12 were looked at while the code was written
PART = Settings().parts[1]  # of the error, that kinds may spend


def some(rng, n, m, lost=0.0):
    """Draw n and m photographs without repeats; only the reference has the lost class, in a given share."""
    _, labels = photographs()
    first, *others = rng.permutation(np.unique(labels)[CLASSES])
    rest, of_first = (rng.permutation(np.flatnonzero(np.isin(labels, names))) for names in (others, [first]))
    count = round(lost * m)
    return rest[:n], np.concatenate([of_first[:count], rest[n : n + m - count]]), labels == first


def pictured(indices, images):
    return fe.EmbeddingSet(np.zeros((len(indices), 4), np.float32), images=images)


def is_blur_seen(rng, n, m, share):
    gen, ref, _ = some(rng, n, m)
    images = [picture(index) for index in gen]
    count = round(share * n)
    images[:count] = [image.filter(ImageFilter.GaussianBlur(1.6)) for image in images[:count]]
    looks = find_looks({"gen": pictured(gen, images), "ref": pictured(ref, [picture(index) for index in ref])}, 0)
    return any(look.name.startswith(SOFT) for look in looks)


def blur(rng, n, m):
    """Return the share that is said, whether it is found, and the sizes that show half."""
    gen, ref, _ = some(rng, n, m)
    sets = {label: pictured(part, [picture(i) for i in part]) for label, part in (("gen", gen), ("ref", ref))}
    share, times = visible_blur(sets, measured.measure_sets(sets), 0)
    return share, None if times is None else max(times, RARER)


def divided(rng, n, m, share=0.0):
    gen, ref, is_lost = some(rng, n, m, share)
    sets = {label: fe.EmbeddingSet(photographs()[0][part]) for label, part in (("gen", gen), ("ref", ref))}
    return divide(sets, seed=0, run=Run(), part=PART), sets, is_lost[ref]


def is_lost_seen(rng, n, m, share):
    answer, sets, is_lost = divided(rng, n, m, share)
    kinds, _, tree = answer.described(sets)
    significant = [place for place, kind in enumerate(kinds) if kind.p_value <= ALPHA]
    of_ref = tree.assign(sets["ref"]) if significant else None
    return any(kinds[place].share_ref > kinds[place].share_gen and is_lost[of_ref == place].mean() > 0.5
               for place in significant)  # fmt: skip


def lost(rng, n, m):
    share = divided(rng, n, m)[0].choice.tests.detectable(PART * ALPHA)
    return (OF_CLASS * share if share < 1 else None), RARER


def is_copied_seen(rng, n, m, share):
    gen, ref, _ = some(rng, n, m)
    gen[: round(share * n)] = ref[: round(share * n)]
    return bool(
        hold_copies({name: fe.EmbeddingSet(photographs()[0][part]) for name, part in (("gen", gen), ("ref", ref))})
    )


def copies(rng, n, m):
    return smallest_copied(n, m), RARER


MODELS = 5  # models of a board


def judged(verb, gen, old, ref):
    """Return what would have been seen, if it is said, and what is found."""
    if verb == "board":
        found = differences_between(gen, old, measured.measure_pictures(old), 0, Run())
        return visible_among(found.visible, MODELS), clear_among(found.findings, MODELS)
    verdict = fe.gate(gen, old, ref, {"basics": {"samples": 20}})
    return verdict.visible, [each for each in verdict.findings if each.p_value is None or each.p_value <= CLEAR]


def of_verb(verb, fault, rng, n, m, share=0.0):
    """Return the share of a fault that a verb says would have been seen, and whether it finds the planted share."""
    gen, older, is_lost = some(rng, n, 2 * m, share / 2 if fault == "lost" else 0.0)
    old, ref = older[:m], older[m:]
    if fault == "copies":
        gen[: round(share * n)] = old[: round(share * n)]
    if fault == "blur":
        images = [[picture(index) for index in part] for part in (gen, old, ref)]
        images[0][: round(share * n)] = [
            image.filter(ImageFilter.GaussianBlur(1.6)) for image in images[0][: round(share * n)]
        ]
        sets = [pictured(part, shown) for part, shown in zip((gen, old, ref), images, strict=True)]
    else:
        sets = [fe.EmbeddingSet(photographs()[0][part]) for part in (gen, old, ref)]
    visible, findings = judged(verb, *sets)
    of_class = {str(row) for row in np.flatnonzero(is_lost[old])}
    is_right = {
        "blur": lambda finding: finding.name.startswith(SOFT),
        "lost": lambda finding: finding.kind == "kind" and len(of_class & {*finding.ids}) > len(finding.ids) / 2,
        "copies": lambda finding: finding.kind == "copy",
    }[fault]
    names = {"blur": "blurred"}
    return getattr(visible, names.get(fault, fault), None), any(map(is_right, findings))


def one_of_verb(regime, seed):
    verb, fault, n, m = regime.split("-")
    said, _ = of_verb(verb, fault, np.random.default_rng([seed, 0]), int(n), int(m))
    found = {"share": said, "times": None}
    if said is not None:
        for place, (key, part) in enumerate((("found", 1.0), ("half", 0.5)), 1):
            found[key] = of_verb(verb, fault, np.random.default_rng([seed, place]), int(n), int(m), part * said)[1]
    return found


FAULTS = {"blur": (blur, is_blur_seen), "lost": (lost, is_lost_seen), "copies": (copies, is_copied_seen)}


def one(regime, seed):
    """Return the share that is said of a fault, and whether it, its half, and its half in more samples are found."""
    measured.measure_looks = measure_once
    if regime.startswith(VERBS):
        return one_of_verb(regime, seed)
    fault, n, m = regime.split("-")
    n, m, (say, is_seen) = int(n), int(m), FAULTS[fault]
    said, times = say(np.random.default_rng([seed, 0]), n, m)
    found = {"share": said, "times": times}
    if said is None:
        return found
    rng = np.random.default_rng([seed, 1])
    found |= {"found": is_seen(rng, n, m, said), "half": is_seen(rng, n, m, said / 2)}
    if times is not None and times * (n + m) <= 2400:  # photographs of 12 classes
        found["half, more"] = is_seen(rng, round(times * n), round(times * m), said / 2)
    return found


def report(found):
    rows = []
    for regime, runs in found.items():
        known = [each["share"] for each in runs if each["share"] is not None]
        times = [each["times"] for each in runs if each["times"] is not None]
        rows.append({
            "regime": regime,
            "share, median": f"{np.median(known):.3f}" if known else "–",
            "times, median": f"{np.median(times):.1f}" if times else "–",
            **{key: rate(runs, key) for key in ("found", "half", "half, more")},
        })  # fmt: skip
    record("visible", rows, "runs that find a fault of the share that is said of sets without it")


if __name__ == "__main__":
    of_verbs = [
        f"{verb}-{fault}-{n}-{n}"
        for n in (150, 300)
        for verb in VERBS
        for fault in FAULTS
        if (verb, fault) != ("gate", "copies")  # copies of a baseline are not asked for
    ]
    run("visible", [*(f"{fault}-{n}-{m}" for fault in FAULTS for n, m in SIZES), *of_verbs], one, report, RUNS)
