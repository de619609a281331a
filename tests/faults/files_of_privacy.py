"""Files of the wing of privacy: how each is made, opened and used."""

import json
import shutil

import numpy as np
from faults.content import N, numbers, sets

import finc_eval as fe
from finc_eval.private.synthesis.files import read_columns, read_images


def make_models(path):
    fe.kahm.save_models(path, fe.kahm.fit_classes(sets()[0], [0, "é"] * (N // 2)))


def use_models(path):
    models = fe.kahm.load_models(path)
    return models.classes, models.predict(sets()[1][:, :6]).tolist() if next(
        iter(models.models.values())
    ).dim == 6 else None


def make_answer(path):
    fe.kahm.federated.ask(path.parent, numbers(5))
    fe.kahm.federated.answer(path.parent, "a", fe.kahm.fit_classes(sets()[0], [0, "é"] * (N // 2)))


def use_answer(path):
    shutil.copy(path.parent.parent / "valid" / "queries.h5", path.parent)
    return fe.kahm.federated.gather(path.parent, ["a"]).values.tolist()


def make_private(path):
    transform = fe.privacy.PublicTransform.fit(numbers(seed=3), 3)
    fe.privacy.release_sketch(
        sets()[1], public=transform, epsilon=3, ledger=None, classes=("0", "1"), labels=["0", "1"] * 30
    ).save(path)


def use_private(path):
    sketch = fe.privacy.PrivateSketch.load(path)
    score = (
        sketch.score(sets()[0], ["0", "1"] * 30) if sketch.transform.dim == 6 and sketch.classes == ("0", "1") else None
    )
    return sketch.signature, sketch.mean.tolist(), sketch.guarantees, score and score.value


SPENT = 0.3


def make_ledger(path):
    ledger = fe.privacy.Ledger.create(path, epsilon=3, delta=1e-5)
    for number in range(3):
        guarantee, views = fe.privacy.Guarantee.of(SPENT, 1e-5), [np.arange(number * N, dtype=np.uint64)] * number
        ledger.spend([f"digest {number}"], guarantee, f"release {number}", "ward 7", views)


def use_ledger(path):
    """Damage may not give a budget back."""
    ledger = fe.privacy.Ledger(path)
    assert ledger.budget == fe.privacy.Guarantee.of(3, 1e-5)
    spent = ledger.spent(["ward 7"])
    assert spent >= 3**0.5 * fe.privacy.Guarantee.of(SPENT, 1e-5).mu * (1 - 1e-9)
    ledger.accounts()
    ledger.spend(["ward 8"], fe.privacy.Guarantee.of(SPENT, 1e-5), "more")
    return spent


TABLE = {
    "label": "ill",
    "columns": [
        {"name": "age", "low": 18, "high": 95, "levels": 7, "integer": True, "usual": 40},
        {"name": "weight", "edges": [0, 50.5, 80, 200]},
        {"name": "smokes", "values": ["no", "yes"]},
        {"name": "ill", "values": ["no", "yes"], "usual": "no"},
    ],
}
PEOPLE = {
    "age": np.arange(18, 78),
    "weight": np.linspace(40, 120, N),
    "smokes": np.array(["no", "yes"] * 30),
    "ill": np.array(["no"] * N),
}


def make_description(path):
    if path.suffix == ".json":
        path.write_text(json.dumps(TABLE))
        return
    columns = "".join(
        "[[columns]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in column.items())
        for column in TABLE["columns"]
    )
    path.write_text('label = "ill"\n' + columns)


def use_description(path):
    table = fe.privacy.Table.load(path)
    records, labels = table.encoded(PEOPLE)
    table.decoded(records, labels, 0)
    return table.levels


def make_people(path):
    if path.suffix == ".npz":
        np.savez(path, **PEOPLE)
    else:
        lines = zip(*(column.tolist() for column in PEOPLE.values()), strict=True)
        path.write_text(",".join(PEOPLE) + "\n" + "".join(",".join(map(str, line)) + "\n" for line in lines))


def use_people(path):
    return {name: column.shape for name, column in read_columns(path).items()}


def use_private_images(path):
    images, labels = read_images(path)
    return images.shape, None if labels is None else labels.shape
