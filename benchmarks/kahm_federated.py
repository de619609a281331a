"""The KAHM paper's Tables 8 to 10: federated classification of digits, every party fabricating its own samples.

Each of the parties adds noise to its digits, fabricates samples out of them (Definition 15 as published), and models
them; the global classifier takes the least distance to a class (eq. 104). The paper has 60 000 training images, here
are 10 000 of them and the official 10 000 test images (FINC_EVAL_ASSETS). As in the paper, a party has one class, or
half of a class, or a random part. The paper has L = 5. Noise is seeded, for this experiment
only: d = 1, δ = 1e-5, n = 20, L = 1.

    python benchmarks/kahm_federated.py --minutes 20        the rows that are missing
"""

import warnings

import numpy as np
import torch
from _papers import published
from _real import mnist
from _rows import record_rows

from finc_eval.private.kahm.element_noise import ElementNoise
from finc_eval.private.kahm.fabrication import fit_private_classes
from finc_eval.private.kahm.federated import combine, local_distances
from finc_eval.private.kahm.settings import KahmSettings

MEMBERS = 10_000
EPSILONS = (16, 1, 4, 8, 2, 1.5, 3, 5)
TABLES = published("tables")["kahm"]
PAPER = {
    **{("one class", 10, epsilon): change for epsilon, *_, change in TABLES["table_8"]["rows"]},
    **{("half of a class", 20, epsilon): change for epsilon, *_, change in TABLES["table_9"]["rows"]},
    **{("at random", parties, 16): change for parties, *_, change in TABLES["table_10"]["rows"]},
}
"""The paper's change in accuracy against one party, by what each party has, the number of parties, and ε."""

SETTINGS = [
    {"ε": epsilon, "parties": parties, "a party's part": part}
    for epsilon in EPSILONS
    for parties, part in (
        (1, "all"),
        (10, "one class"),
        (20, "half of a class"),
        *((parties, "at random") for parties in (2, 5, 10, 20, 50, 100)),
    )
]


def owners(labels, parties, part):
    """Return the party of each sample."""
    at_random = np.random.default_rng(parties).permutation(len(labels))
    if part == "one class":
        return labels
    if part == "half of a class":
        return 2 * labels + at_random % 2
    return at_random % parties


def row(epsilon, parties, part):
    """Return the accuracy of the global classifier."""
    owner, generator = owners(labels, parties, part), torch.Generator().manual_seed(parties)
    answers = []
    for party in range(parties):
        mine = owner == party
        made = fit_private_classes(
            members[mine], labels[mine], ElementNoise(epsilon), KahmSettings(20), strict=False, generator=generator
        )
        answers.append(local_distances(made.models, others))
    return {"accuracy": round(float((np.array(combine(answers).labels) == truth).mean()), 4)}


def compared(rows):
    """Return the rows beside one party's accuracy, as far as it is there, and the paper's figures."""
    alone = {found["ε"]: found["accuracy"] for found in rows if found["parties"] == 1}
    for found in rows:
        told = found["parties"] > 1 and found["ε"] in alone
        found["against one party"] = f"{found['accuracy'] - alone[found['ε']]:+.4f}" if told else ""
        paper = PAPER.get((found["a party's part"], found["parties"], found["ε"]))
        found["against one party, paper"] = "" if paper is None else f"{paper:+.4f}"
    return rows


if __name__ == "__main__" and (data := mnist()) is not None:
    warnings.simplefilter("ignore")  # the published form has no guarantee, and says so
    torch.set_num_threads(1)
    others, members = np.split(data[0], [MEMBERS])
    truth, labels = np.split(data[1], [MEMBERS])
    record_rows(
        "kahm_federated",
        SETTINGS,
        row,
        "MNIST, 10 000 members, 10 000 others, n = 20, L = 1; ε per element; the paper has 60 000 members",
        compared,
    )
