"""Does the headline of a comparison name what was planted, with its share, and nothing untrue?

    python benchmarks/said_first.py --half shown [--only "koala|blur" --seed 0 --jobs 1]

Faults that people see are planted in photographs of 64 pixels (300 against 300, of 20 classes of unequal size, saved as
JPEG), of 128 pixels (250 against 250), in digits and in clips (see `_planted_faults.py`). The reference and each
generated set are disjoint draws. Half of the faults are shown, to develop by; the others are held out. Verdicts:

    right        every part of the fault is said with its share, and nothing untrue
    partly       one of two parts is said, or a part without its share
    consequence  only what follows from the fault is said
    false        something untrue is claimed: another class, another look, or a share that is far too large
    silent       nothing of it is said

Shares may be off by 3 points or 40 %; "at least" may be less. The table has the share that was said of each part and
its interval: of a look, of its share; of a kind, of the difference of both shares.
"""

import argparse
import io
import random
import re
import tempfile
import zipfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

import _real
import numpy as np
import torch
import video_faults
from _planted_faults import FAULTS, Drawn, Part
from _record import record
from PIL import Image, ImageOps

import finc_eval as fe

QUALITY = 92  # of the JPEG files of all sets
SPARE = ("convertible", "lemon", "lion", "tarantula")  # classes that the reference lacks
SIZES = {"seashore": 45, "golden_retriever": 30}  # samples of these classes; the others have 12 or 13, in all 300
CLIPS = 80  # clips of each set
NOT_CLAIMED = re.compile(r"[^.]*would have been seen[^.]*\.")  # what would have been said of other faults
UNNAMED = "a part that hardly any"  # words for a part of pictures that nothing names
VERDICTS = ("right", "partly", "consequence", "false", "silent")


# --- sets


@cache
def photographs():
    """Return the bytes of the photographs of each class."""
    found = {}
    with zipfile.ZipFile(_real.asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".JPEG"):
                found.setdefault(name.split("/")[0], []).append(archive.read(name))
    return found


def opened(data):
    return Image.open(io.BytesIO(data)).convert("RGB")


def draw_64(seed, number, counts):
    """Draw a reference, the same for all numbers, and a disjoint generated set with other counts of some classes."""
    gen, classes, ref = [], [], []
    base = [name for name in photographs() if name not in SPARE]
    sizes = {name: SIZES.get(name, 12 + place % 2) for place, name in enumerate(n for n in base if n not in SIZES)}
    for name in base:
        pool = random.Random(f"{seed} {name}").sample(photographs()[name], 300)
        size = SIZES.get(name) or sizes[name]
        ref += pool[:size]
        new = random.Random(f"{seed} {number} {name}").sample(pool[size:], dict(counts).get(name, size))
        gen, classes = gen + new, classes + [name] * len(new)
    for name in {*dict(counts)} & {*SPARE}:
        new = random.Random(f"{seed} {number}").sample(photographs()[name], dict(counts)[name])
        gen, classes = gen + new, classes + [name] * len(new)
    order = random.Random(f"{seed} {number}").sample(range(len(gen)), len(gen))
    return Drawn([opened(gen[i]) for i in order], [classes[i] for i in order], [opened(data) for data in ref])


def draw_128(seed, number, counts):
    """Cut 500 photographs of 128 pixels, and divide them by chance; the reference stays the same."""
    with zipfile.ZipFile(_real.asset("photos", "imagenet_500.zip")) as archive:
        names = random.Random(f"{seed}").sample(sorted(n for n in archive.namelist() if n.endswith("jpg")), 500)
        images = [ImageOps.fit(opened(archive.read(name)), (128, 128)) for name in names]
    return Drawn(images[250:], names[250:], images[:250])


def draw_digits(seed, number, counts):
    x, names = _real.mnist()
    order = np.random.default_rng([seed, 1]).permutation(len(x))
    own = np.random.default_rng([seed, number]).permutation(order[300:])[:300]
    return Drawn(*[[as_image(row) for row in x[own]], names[own].tolist(), [as_image(row) for row in x[order[:300]]]])


def as_image(row):
    return Image.fromarray((255 * row.reshape(28, 28)).astype("u1")).convert("RGB")


DRAWN = {"photos 64": draw_64, "photos 128": draw_128, "digits": draw_digits}


def saved(folder, images):
    """Save images to a folder, digits without loss."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(images):
        image.save(folder / f"{number:04d}.{'jpg' if image.width > 28 else 'png'}", quality=QUALITY)
    return str(folder)


@cache
def scenes(seed):
    return video_faults.scenes(2 * CLIPS, seed)


def compare_clips(fault, seed):
    """Compare clips, some with the fault, with clips without it."""
    rng, changed = np.random.default_rng(seed), round(fault.parts[0].share / 100 * CLIPS)
    how = {"stops": video_faults.still_second_half, "flickers": lambda scene: video_faults.flickers(scene, 2)}
    order = rng.permutation(2 * CLIPS)
    made = [how[fault.plant](scenes(seed)[place]) for place in order[:changed]]
    made += [video_faults.clip_of(scenes(seed)[place]) for place in order[changed:]]
    with fe.extract(np.stack(made[:CLIPS]), "motion") as gen, fe.extract(np.stack(made[CLIPS:]), "motion") as ref:
        return fe.compare(gen, ref)


def compare(fault, seed, folder):
    """Plant a fault, and compare the set with its reference."""
    number = FAULTS.index(fault)
    if fault.source == "clips":
        return compare_clips(fault, seed)
    drawn = DRAWN[fault.source](seed, number, fault.counts)
    fault.plant(drawn, np.random.default_rng([seed, number]))
    place = Path(folder) / f"{seed}"
    ref = saved(place / f"{fault.source}-ref", drawn.reference)
    return fe.compare(saved(place / f"{number}", drawn.images), ref)


# --- verdicts

CLAUSES = re.compile(r"(?<=[.;!?])\s+|,\s+(?:and\s+)?(?=(?:at least |about |nearly |only )?\d)|\s+and\s+(?=\d)")
PERCENT = re.compile(r"(?i)(at least )?(?:\d+(?:\.\d+)? (?:to|–) )?(\d+(?:\.\d+)?)\s?%")
NOUNS = re.compile(r"[“\"]([^”\"]+)[”\"]")


@dataclass(frozen=True)
class Verdict:
    """Judgment of a headline: the verdict, and its reason."""

    verdict: str
    why: str = ""


def shares_in(clause, *, with_reference):
    """Return (percentage, whether it is a lower bound) of a clause, of the reference only `with_reference`."""
    text = clause if with_reference else re.sub(r"\breference [^),;]*", "", clause)
    found = [(float(number), bool(least)) for least, number in PERCENT.findall(text)]
    return [*found, (97.0, False)] if re.search("nearly all", text, re.I) else found


def is_near(said, is_least, share):
    return abs(said - share) <= max(3, 0.4 * share) or (is_least and 0.4 * share <= said <= share + 3)


def judge(fault, headline, findings):
    """Return the verdict on a headline; `findings` are (kind, name) of all findings of the comparison."""
    if not fault.parts:
        return Verdict("false", "something is claimed") if findings else Verdict("right")
    if untrue := untrue_in(fault, headline, findings):
        return Verdict("false", untrue)
    found = [how_said(part, headline) for part in fault.parts]
    if all(share == "right" for share in found):
        return Verdict("right")
    if any(found):
        missed = [part.words for part, how in zip(fault.parts, found, strict=True) if not how]
        return Verdict("partly", f"not said: {missed[0]}" if missed else "without its share")
    claims = NOT_CLAIMED.sub("", headline)
    return Verdict("consequence" if re.search(fault.follows, claims, re.I) else "silent")


def how_said(part, headline):
    """Return "right" if a part is said with its share, "partly" if without, "" if not at all."""
    clauses = [clause for clause in CLAUSES.split(headline) if re.search(part.words, clause, re.I)]
    if not clauses:
        return ""
    is_kind = part.before > 0
    for clause in clauses:
        shares = shares_in(clause, with_reference=is_kind)
        if part.share is None or any(is_near(*said, part.share) for said in shares):
            return "right"
        if is_kind and any(is_near(*said, part.before) for said in shares):
            return "right"
    return "partly"


def untrue_in(fault, headline, findings):
    """Return what is untrue in a headline: a look or a class that was not planted, or far too large a share; or ""."""
    # Pictures with an unnamed part are shown, and any fault of pictures gives some.
    true = "|".join([*(part.words for part in fault.parts), fault.follows, fault.named, *[UNNAMED] * bool(fault.parts)])
    said = [name for kind, name in findings if kind != "sets" and name in headline]
    named = [noun for noun in NOUNS.findall(headline) if not any(noun in name for name in said)]
    for name in [*said, *named]:
        if not re.search(true, name, re.I) and not re.fullmatch(r"k\d+", name):
            return name
    if found := re.search(fault.false, headline, re.I):
        return found[0]
    for part in fault.parts:
        for clause in CLAUSES.split(headline):
            if part.share and not part.before and re.search(part.words, clause, re.I):
                large = [number for number, _ in shares_in(clause, with_reference=False)]
                if large and min(large) > max(1.6 * part.share, part.share + 5):
                    return f"{min(large):g} % of {part.share:g} %"
    return ""


# --- rows


def estimates(fault, comparison):
    """Return the share that is said of each part, with its interval where there is one, and whether that holds it."""
    cells = {"said": [], "interval": [], "holds": []}
    for part in fault.parts:
        found = next((each for each in comparison.findings if re.search(part.words, each.name, re.I)), None)
        if found is None or found.share_gen is None or part.share is None:
            continue
        cells["said"].append(f"{100 * found.share_gen:.1f}")
        if (ends := found.share_interval or found.interval) is not None:
            low, high = (100 * end for end in ends)
            truth = part.share - part.before * (found.kind == "kind")
            cells["interval"].append(f"[{low:.1f}, {high:.1f}]")
            cells["holds"].append("yes" if low <= truth <= high else "no")
    return {name: "; ".join(values) for name, values in cells.items()}


def planted(part: Part):
    return "all" if part.share is None else f"{part.share:.3g}" + f" of {part.before:.3g}" * (part.before > 0)


def row_of(name, seed, folder):
    """Return the row of a fault."""
    fault = next(each for each in FAULTS if each.name == name)
    comparison = compare(fault, seed, folder)
    findings = [(finding.kind, finding.name) for finding in comparison.findings]
    told = judge(fault, comparison.headline, findings)
    return {
        "fault": fault.name,
        "kind": fault.kind,
        "planted, %": "; ".join(planted(part) for part in fault.parts),
        "verdict": told.verdict,
        "why": told.why,
        **estimates(fault, comparison),
        "headline": comparison.headline,
    }


def main():
    arguments = argparse.ArgumentParser(epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--half", choices=("shown", "held"), default="shown", help="half of the faults")
    arguments.add_argument("--only", default="", help="regular expression in the names of faults; nothing is recorded")
    arguments.add_argument("--seed", type=int, default=0, help="random seed of all draws")
    arguments.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    options = arguments.parse_args()
    names = [fault.name for fault in FAULTS if fault.half == options.half and re.search(options.only, fault.name)]
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(
            options.jobs, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
        ) as pool,
    ):
        for row in pool.map(partial(row_of, seed=options.seed, folder=folder), names):
            rows.append(row)
            said = f"planted {row['planted, %']}, said {row['said'] or '–'} {row['interval']} {row['holds']}"
            print(f"{row['verdict'].upper():11} {row['fault']} | {row['why']} | {said} | {row['headline']}", flush=True)
    counts = Counter(row["verdict"] for row in rows)
    held = [answer for row in rows for answer in row["holds"].split("; ") if answer]
    total = ", ".join(f"{verdict} {counts[verdict]}" for verdict in VERDICTS)
    print(f"{total}; intervals that hold the planted share: {held.count('yes')}/{len(held)}")
    if rows and not options.only:
        notes = f"faults planted in sets of 300 against 300, seed {options.seed}: {total}"
        record(f"said_first_{options.half}", rows, notes, total=partial(sum_up, total=total))


def sum_up(rows, total):
    return {"fault": f"all {len(rows)}", "kind": "", "planted, %": "", "verdict": total}


if __name__ == "__main__":
    main()
