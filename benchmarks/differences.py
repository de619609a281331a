"""Compare tools that describe how two sets differ: samples, shares and words, and silence about equal sets.

    python benchmarks/differences.py run [--seed 1] [--only shapes]     judge finc-eval and simple methods
    python benchmarks/differences.py write FOLDER [--seed 1]            write the cases, for another tool
    python benchmarks/differences.py judge FOLDER ANSWER.json           judge the answer of another tool

DIFFERENCES.md has the format. Seed 0 is for development, others are held out. *found*: planted differences of which a
list of samples is found; *side*, *share*, *words*: found ones with the right set, share, and words. *clean*: cases
without a false difference. *equal sets*: of cases with nothing planted, those in which something is said. Intervals are
of 95 % and of other cases. *ranks*: ranks by *found* that hold together with probability 95 %. Answers are kept in
~/.cache/finc-eval/benchmarks/differences-SEED: after a change of cases or methods, delete them.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from _differences.answers import read_answer
from _differences.cases import all_cases
from _differences.judge import Planted, judge
from _differences.rivals import SIDES, TOOLS, Opened, open_pictures
from _real import CACHE
from _record import record
from scipy.stats import binomtest

import finc_eval as fe
from finc_eval.core.errors import DataError

JUDGES = ("found", "side", "share", "words", "clean")
PATHS = {"run": (), "write": ("FOLDER",), "judge": ("FOLDER", "ANSWER.json")}


def write(folder, seed):
    """Write all cases, and their truths in one file, to a new or empty folder."""
    if folder.is_dir() and any(folder.iterdir()):
        raise DataError(f"{folder} is not empty: name a new folder for the cases")
    truths = {}
    for key, draw in all_cases(seed).items():
        case = draw()
        case.save(folder / key.replace(" ", "-"))
        truths[key.replace(" ", "-")] = case.truth
    (folder / "truth.json").write_text(json.dumps(truths, indent=1))


def judge_file(folder, answer):
    """Return the scores of an answer by case, from the cases' truths; a case without an answer has an empty one."""
    if not (folder / "truth.json").is_file():
        raise DataError(f"{folder} has no truth.json: write the cases into it first")
    truths = json.loads((folder / "truth.json").read_text())
    given = read_answer(answer, truths)
    return {
        name: judge([Planted(**each) for each in truth["planted"]], given.get(name, []), truth["sizes"])
        for name, truth in truths.items()
    }


def means_of(verdicts):
    """Return the mean of each score over the cases that have it, and of how many equal sets something is said."""
    scores = [each.scores() for each in verdicts]
    of_cases = {name: [each[name] for each in scores if name in each] for name in JUDGES}
    means = {name: round(float(np.mean(values)), 2) for name, values in of_cases.items() if values}
    nulls = [each for each in verdicts if each.found is None]
    return means | {"equal sets": f"{sum(each.clean == 0 for each in nulls)} of {len(nulls)}", "cases": len(scores)}


def open_case(case, folder):
    """Write a case, and embed its samples."""
    case.save(folder)
    caches = {side: fe.extract(folder / side, case.extractor, out=folder / f"{side}.h5") for side in SIDES}
    held = {side: open_pictures(folder / side) for side in SIDES}
    names = {side: list(caches[side].ids) for side in SIDES}
    prompts = {side: caches[side].column("prompt") for side in SIDES} if case.prompts else {}
    return Opened(
        caches,
        {side: np.asarray(caches[side][:], np.float32) for side in SIDES},
        {side: [f"{side}/{name}" for name in names[side]] for side in SIDES},
        {side: [held[side][name] for name in names[side]] for side in SIDES},
        prompts,
    )


def answers_of(key, case, seed):
    """Return the answer of each tool to a case, with seconds of the processor; they are computed once and kept."""
    kept = CACHE / f"differences-{seed}" / f"{key.replace(' ', '-')}.json"
    if not kept.exists():
        made = {}
        with tempfile.TemporaryDirectory() as folder:
            opened = open_case(case, Path(folder) / "case")
            for name, tool in TOOLS.items():
                started = time.process_time()
                answer = tool(opened, np.random.default_rng(seed))
                made[name] = {"answer": answer, "seconds": time.process_time() - started}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(made, indent=1))
    return json.loads(kept.read_text())


def run(seed, only):
    """Return the verdicts on each tool by case, and the seconds of the processor by tool."""
    verdicts, seconds = {name: {} for name in TOOLS}, dict.fromkeys(TOOLS, 0.0)
    for key, draw in all_cases(seed).items():
        if not key.startswith(only):
            continue
        case = draw()
        sizes = {side: len(samples) for side, samples in case.sets.items()}
        print(case.name, flush=True)
        for name, found in answers_of(key, case, seed).items():
            verdict = judge(case.planted, found["answer"], sizes)
            verdicts[name][case.name] = verdict
            seconds[name] += found["seconds"]
            said = "; ".join(each.get("words", "")[:90] for each in found["answer"])
            print(f"    {name:28} {verdict.claims} claims {verdict.scores()} {said}", flush=True)
    return verdicts, seconds


def board_of(verdicts):
    """Return the board of the tools by their scores of each case."""
    scores = {
        name: [{"id": case, "prompt": case, **verdict.scores()} for case, verdict in by_case.items()]
        for name, by_case in verdicts.items()
    }
    sets = {}
    for name, by_case in verdicts.items():
        rows = [[verdict.scores().get(each, 1.0) for each in JUDGES] for verdict in by_case.values()]
        sets[name] = fe.EmbeddingSet(np.array(rows, np.float32), ids=[*by_case])
    ideal = fe.EmbeddingSet(np.ones_like(rows, np.float32), ids=[*by_case])
    return fe.leaderboard(sets, ideal, scores=scores, judges=list(JUDGES), rank_by="found")


def ends(interval):
    """Write the ends of an interval of a share, cut off at 0 and 1."""
    low, high = np.clip(interval, 0, 1)
    return f"[{low:.2f}, {high:.2f}]"


def rows_of(verdicts, seconds):
    board = board_of(verdicts)
    standings = {(each.judge, each.name): each for each in board.scores}
    rows = []
    for name, by_case in verdicts.items():
        nulls = [verdict for verdict in by_case.values() if verdict.found is None]
        said = sum(verdict.clean == 0 for verdict in nulls)
        row = {"tool": name}
        for each in JUDGES:
            standing = standings[each, name]
            row[each] = f"{standing.value:.2f} {ends(standing.interval)}"
        row["ranks"] = "–".join(map(str, dict.fromkeys(standings["found", name].rank_set)))
        row["equal sets"] = f"{said} of {len(nulls)} {ends(binomtest(said, len(nulls)).proportion_ci())}"
        row["follow, false"] = (
            f"{sum(v.consequences for v in by_case.values())}, {sum(v.false for v in by_case.values())}"
        )
        row["CPU s a case"] = f"{seconds[name] / len(by_case):.1f}"
        rows.append(row)
    return sorted(rows, key=lambda row: -float(row["found"].split()[0]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="run", choices=["run", "write", "judge"])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="beginning of the names of cases; nothing is recorded")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if len(given.paths) != len(asked := PATHS[given.what]):
        parser.error(f"{given.what} takes {' '.join(asked) or 'no path'}")
    try:
        do_task(given)
    except DataError as error:
        parser.error(str(error))


def do_task(given):
    """Do what the arguments ask for."""
    if given.what == "write":
        write(given.paths[0], given.seed)
    elif given.what == "judge":
        verdicts = judge_file(*given.paths)
        for name, verdict in verdicts.items():
            print(name, verdict)
        print(means_of(verdicts.values()))
    else:
        verdicts, seconds = run(given.seed, given.only)
        if not given.only:
            rows = rows_of(verdicts, seconds)
            print(*rows, sep="\n")
            cases = len(next(iter(verdicts.values())))
            record("differences", rows, f"{cases} cases of seed {given.seed}")


if __name__ == "__main__":
    main()
