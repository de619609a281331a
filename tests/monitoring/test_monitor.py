"""What a monitor says of trainings that change, and of those that do not."""

import copy

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.monitoring.evidence.asked import MOST_SAMPLES

CENTERS = 4 * np.random.default_rng(5).normal(size=(6, 12))
KINDS = np.arange(6)


def samples(rng, n=64, weights=None):
    places = rng.choice(KINDS, n, p=weights)
    return (CENTERS[places] + rng.normal(size=(n, 12))).astype(np.float32), places


@pytest.fixture(scope="module")
def fresh():
    rows, places = samples(np.random.default_rng(0), 900)
    return fe.Monitor(fe.EmbeddingSet(rows, metadata={"label": [f"kind-{one}" for one in places]}))


def follow(fresh, make, looks=20):
    monitor = copy.deepcopy(fresh)
    for step in range(1, looks + 1):
        monitor.update(step, make(step))
    return monitor


def test_a_kind_that_fades_is_named_with_its_shares(fresh):
    rng = np.random.default_rng(1)

    def make(step):
        weights = np.ones(6)
        weights[2] = max(0, 1 - step / 10)
        return samples(rng, weights=weights / weights.sum())[0]

    monitor = follow(fresh, make, 16)
    alarm = next(one for one in monitor.alarms if "kind-2" in one.name)
    assert alarm.after < alarm.before and 0.1 < alarm.before < 0.25
    assert alarm.text.startswith("since step ") and f"(before: {100 * alarm.before:.0f} %)" in alarm.text


def test_less_diversity_is_named_with_its_size(fresh):
    rng = np.random.default_rng(2)
    monitor = follow(fresh, lambda step: samples(rng)[0] * (0.5 if step > 8 else 1), 14)
    alarm = next(one for one in monitor.alarms if one.name == "diversity")
    assert 9 <= alarm.step <= 13 and alarm.since >= 7 and "less diverse (−5" in alarm.text
    assert monitor.result.keep <= 8


def test_new_kinds_and_repeats_are_named(fresh):
    rng = np.random.default_rng(3)

    def make(step):
        rows = samples(rng)[0]
        rows[:12] = 30 + rng.normal(size=(12, 12))
        rows[20:50] = rows[20]
        return rows

    alarms = {one.name: one for one in follow(fresh, make, 12).alarms}
    assert alarms["new kinds"].after > 0.15 > alarms["new kinds"].before
    assert alarms["repeats"].after > 0.4


def test_an_unchanged_training_has_no_alarm(fresh):
    """One seed of what the benchmark measures in hundreds of runs; a fault of the scores would raise dozens."""
    rng = np.random.default_rng(4)
    monitor = follow(fresh, lambda step: samples(rng)[0], 16)
    assert monitor.alarms == []
    assert monitor.result.keep is not None and "No alarm" in monitor.result.why


def test_an_image_that_gets_more_colorful_or_a_grid_is_named():
    rng = np.random.default_rng(6)

    def pictures(n, color=1.0, grid=0):
        light = rng.uniform(60, 190, (n, 1, 1, 1)) + rng.normal(0, 12, (n, 32, 32, 1))
        tint = rng.normal(0, 20, (n, 1, 1, 3)) * color
        pixels = light + tint
        pixels[:, ::4] += grid
        pixels[:, :, ::4] += grid
        pixels = np.clip(pixels, 0, 255).astype(np.uint8)
        return fe.EmbeddingSet(pixels.reshape(n, 8, 4, 8, 4, 3).mean((2, 4)).reshape(n, -1) / 255, images=[*pixels])

    monitor = fe.Monitor(pictures(100))
    colored = copy.deepcopy(monitor)
    for step in range(1, 8):
        colored.update(step, pictures(32, color=1 + step / 5))
    alarm = next(one for one in colored.alarms if one.name == "saturation")
    assert "more vivid" in alarm.text and "%" in alarm.text and alarm.after > alarm.before
    gridded = copy.deepcopy(monitor)
    for step in range(1, 10):
        gridded.update(step, pictures(32, grid=6 * step))
    assert "pattern" in {one.name for one in gridded.alarms}
    page = gridded.result
    assert len(page.pictures) == 7 and min(page.pictures) == 1 and max(page.pictures) == 9


def test_a_monitor_that_is_loaded_goes_on_as_if_it_had_not_stopped(fresh, tmp_path):
    rng = np.random.default_rng(7)
    looks = [samples(rng)[0] * (1 if step < 4 else 0.6) for step in range(8)]
    whole, half = copy.deepcopy(fresh), copy.deepcopy(fresh)
    for step, rows in enumerate(looks):
        whole.update(step, rows)
    for step, rows in enumerate(looks):
        half.update(step, rows)
        if step % 3 == 2:
            half.save(tmp_path / "monitor.h5")
            half = fe.Monitor.load(tmp_path / "monitor.h5")
    assert half.alarms == whole.alarms != []
    assert half.result.to_dict() | {"provenance": 0, "checksum": 0} == whole.result.to_dict() | {
        "provenance": 0,
        "checksum": 0,
    }


def test_parts_of_processes_add_up(fresh):
    rows = samples(np.random.default_rng(8))[0]
    whole, several = copy.deepcopy(fresh), copy.deepcopy(fresh)
    whole.update(1, rows)
    several.add(1, [several.measure(part) for part in (rows[:32], torch.from_numpy(rows[32:]))])
    kinds = len(fresh.basis.names)
    assert np.array_equal(whole.history.sums[:, :kinds], several.history.sums[:, :kinds])
    assert np.allclose(whole.history.distances, several.history.distances)


def test_what_are_no_parts_of_this_monitor_is_refused(fresh):
    monitor, rng = copy.deepcopy(fresh), np.random.default_rng(9)
    part = monitor.measure(samples(rng)[0])
    for parts, got in (([], "an empty list"), (part, "EvaluationPart"), ([part, 3], "int"), (None, "NoneType")):
        with pytest.raises(fe.UsageError, match=f"a list of what measure returned on each process, got {got}"):
            monitor.add(1, parts)
    other = fe.Monitor(rng.normal(size=(100, 3)))
    with pytest.raises(fe.IncompatibleError, match="load the same file of a monitor on each process"):
        monitor.add(1, [part, other.measure(rng.normal(size=(64, 3)))])
    assert not monitor.steps


def test_a_look_of_a_single_sample_counts(fresh):
    monitor = copy.deepcopy(fresh)
    for step in torch.arange(1, 4):  # as trainers have it
        monitor.update(step, samples(np.random.default_rng(int(step)), 1)[0])
    assert monitor.steps == [1, 2, 3] and monitor.result.samples == (1, 1, 1) and not monitor.alarms


def test_diversity_within_prompts_is_followed():
    rng = np.random.default_rng(9)
    prompts = [f"prompt {number // 4}" for number in range(400)]
    monitor = fe.Monitor(rng.normal(size=(400, 6)), prompts=prompts)
    for step in range(8):
        rows = rng.normal(size=(64, 6))
        if step > 2:
            rows = np.repeat(rng.normal(size=(16, 6)), 4, 0) + 0.1 * rows
        monitor.update(step, rows, prompts=[f"other {number // 4}" for number in range(64)])
    assert "diversity within prompts" in {one.name for one in monitor.alarms}


def test_the_fit_to_prompts_is_followed(tmp_path):
    """Vectors of prompts are those of the samples and noise; later, samples are of other prompts than they say."""
    rng = np.random.default_rng(12)
    names, vectors = [f"prompt {one}" for one in range(12)], rng.normal(size=(12, 6)).astype(np.float32)
    np.savez(tmp_path / "vectors.npz", embeddings=vectors, prompts=np.array(names))

    def draw(n, wrong):
        of = rng.permutation(np.arange(n) % 12)
        rows = vectors[np.where(rng.random(n) < wrong, rng.integers(12, size=n), of)] + 0.3 * rng.normal(size=(n, 6))
        return rows, [names[one] for one in of]

    rows, prompts = draw(600, 0)
    monitor = fe.Monitor(rows, prompts=prompts, text=str(tmp_path / "vectors.npz"))
    for step in range(12):
        rows, prompts = draw(60, 0.3 if step > 3 else 0)
        monitor.update(step, rows, prompts=prompts)
    alarm = next(one for one in monitor.alarms if one.name == "fit")
    assert "samples fit their prompts less (−" in alarm.text and alarm.since >= 3
    wanted = vectors[[names.index(one) for one in prompts]]
    cosine = (rows * wanted).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(wanted, axis=1)
    shown = next(one for one in monitor.result.followed if one.name == "fit").values[-1]
    assert shown == pytest.approx(2.5 * np.maximum(cosine, 0).mean(), rel=1e-5)
    with pytest.raises(fe.DataError, match="has no embedding for 1 of 13 prompts"):
        monitor.update(99, rows, prompts=["other", *prompts[1:]])
    unknown = fe.Monitor(draw(60, 0)[0], prompts=names * 5)
    assert "fit" not in {one.name for one in unknown.result.followed}


def test_memory_does_not_grow_with_the_samples(fresh):
    def size(monitor):
        arrays = [*vars(monitor.history).values(), *vars(monitor.history.classifiers.unlike).values()]
        return sum(one.nbytes for one in arrays if isinstance(one, np.ndarray))

    rng = np.random.default_rng(10)
    small, large = (follow(fresh, lambda step, n=n: samples(rng, n)[0], 2) for n in (MOST_SAMPLES, 2000))
    assert size(small) == size(large)


def test_samples_of_the_seeds_of_the_reference_are_warned_of_once():
    rng = np.random.default_rng(12)
    reference, _ = samples(rng, 200)
    monitor = fe.Monitor(reference)
    with pytest.warns(UserWarning, match="those of the reference, in the same order and hardly changed: ") as noted:
        for step in range(3):
            monitor.update(step, reference[: 64 + step] + 0.1 * rng.normal(size=(64 + step, 12)))
    assert len(noted) == 1
    shuffled = fe.Monitor(reference)
    shuffled.update(1, rng.permutation(reference)[:64] + 0.5 * rng.normal(size=(64, 12)))
    assert not shuffled.warnings


def test_samples_of_the_same_seeds_are_warned_of_once(fresh):
    rng = np.random.default_rng(11)
    monitor, rows = copy.deepcopy(fresh), samples(rng)[0]
    monitor.update(1, rows)
    with pytest.warns(UserWarning, match="new seeds") as noted:
        monitor.update(2, rows + 0.1 * rng.normal(size=rows.shape))
        monitor.update(3, rows + 0.1 * rng.normal(size=rows.shape))
    assert len(noted) == 1 and len(monitor.result.warnings) == 1
    places = rng.integers(6, size=64)
    other = copy.deepcopy(fresh)
    for step in range(3):  # the same prompts with new seeds
        other.update(step, CENTERS[places] + rng.normal(size=(64, 12)))
    assert not other.warnings
    noise = fe.Monitor(rng.uniform(size=(100, 784)))  # all of its distances are nearly equal
    for step in range(10):
        noise.update(step, rng.uniform(size=(64, 784)))
    assert not noise.warnings


NO_STEPS = ((one, "step must be a number, got") for one in ("6", None, float("nan"), True, np.arange(2)))


def test_mistakes_get_one_sentence(fresh):
    monitor = copy.deepcopy(fresh)
    monitor.update(5, samples(np.random.default_rng(14))[0])
    for step, words in ((5, "step 5 comes after step 5"), (4, "step 4 comes after step 5"), *NO_STEPS):
        with pytest.raises(fe.UsageError, match=words):
            monitor.update(step, samples(np.random.default_rng(14))[0])
    with pytest.raises(fe.IncompatibleError, match="7 entries per embedding, and the reference 12"):
        monitor.update(6, np.zeros((64, 7)))
    assert monitor.steps == [5]
    with pytest.raises(fe.DataError, match="most samples of the reference are equal"):
        fe.Monitor(np.ones((100, 3)))
    with pytest.raises(fe.DataError, match="39 samples, and a monitor needs at least 40"):
        fe.Monitor(np.random.default_rng(0).normal(size=(39, 3)))
    with pytest.raises(fe.UsageError, match="2 prompts for 64 samples"):
        monitor.update(6, samples(np.random.default_rng(14))[0], prompts=["a", "b"])
