"""One result of every type, of small sets."""

import numpy as np

import finc_eval as fe
from finc_eval.demo import example_sets
from finc_eval.private.kahm.membership import membership_score

PICTURE = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)  # a golden picture


PEOPLE = {"age": np.arange(18, 68), "ward": np.array(["east", "west"] * 25)}


def synthetic_people():
    """Make a synthetic table, and return it and its description."""
    ward = fe.privacy.Category("ward", ("east", "west"))
    table = fe.privacy.Table((fe.privacy.Number.between("age", 18, 95),), ward)
    return fe.privacy.synthesize_table(PEOPLE, table, epsilon=1, steps=5, ledger=None), table


def course_of_looks(x, y):
    """Follow a generator over two steps; the second step has another law."""
    monitor = fe.Monitor(y)
    monitor.update(1, x)
    monitor.update(2, np.repeat(y[:4], 40, 0))
    return monitor.result


def hull_machines(members, others):
    """Make the results of models of two classes, of how they classify, and of fabricated samples."""
    bold, other_bold = (np.where(rows.mean(1) > 0.13, "bold", "thin") for rows in (members, others))
    models, noise = fe.kahm.fit_classes(members, bold), fe.kahm.ElementNoise(epsilon=8)
    made = fe.kahm.fabricate_classes(members, bold, noise)
    return (
        fe.kahm.describe_models(models, others, other_bold),
        fe.kahm.classify(models, others, other_bold),
        fe.kahm.describe_fabrication(made, bold, noise, originals=members, others=others),
    )


def one_of_each(folder):
    """Make one result of every type, by the name of the type; the private sketch behind two of them is "sketch".

    Args:
        folder: folder for the ledger.
    """
    gen, ref = example_sets(400)
    x, y = gen[:200], ref[:200]
    comparison = fe.compare(x, y, features=50)
    ledger = fe.privacy.Ledger.create(folder / "ledger", epsilon=1, delta=1e-5)
    synthetic, table = synthetic_people()
    private = fe.privacy.release_sketch(y, public=ref[200:], epsilon=1, ledger=ledger)
    made = [
        comparison,
        fe.compare_methods(x, y, "finc", features=50),
        fe.sweep(x, y, "rho", [1], features=50),
        fe.compare_releases(comparison, comparison, alpha=1 - 1e-9),
        fe.compare({"a": x, "b": x[:, :300]}, {"a": y, "b": y[:, :300]}, features=50),
        fe.kinds([x, y]),
        fe.leaderboard([x, gen[200:]], y),
        fe.gate(x, y, ref[200:], {"kinds": {"lose": 0.5, "min_share": 0.1}}),
        course_of_looks(x, y),
        fe.compare_trainings({"a": {1: x, 2: gen[200:]}, "b": {1: ref[200:], 2: np.repeat(y[:4], 40, 0)}}, y),
        fe.metrics(x, y, ["vendi", "prdc", "fid"]),
        fe.audit(gen, ref[:200], ref[200:]),
        fe.evaluate(x[:60], y[:60], features=20),
        membership_score(np.arange(1.0, 40), np.arange(2.0, 50), permutations=19),
        *hull_machines(x[:60], y[:60]),
        private.score(x),
        private.compare({"a": x, "b": gen[200:]}),
        fe.leaderboard([x, gen[200:]], private),
        synthetic.synthesis,
        fe.privacy.table_utility(PEOPLE, synthetic.values, table),
        fe.Golden(folder / "floor.jsonl").add({"p": PICTURE}, {"p": PICTURE}, machine="a"),
    ]
    return {one.type_name: one for one in made} | {"sketch": private}
