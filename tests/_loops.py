"""What the tests of training loops share: a callback with faults in it, and readers of what arrived in trackers."""

import json
import time
import warnings

import numpy as np
import pytest
import torch

import finc_eval as fe


def needed(package):
    """Import a package, or skip the test."""
    return pytest.importorskip(package, reason=f"needs {package}: make loops installs it")


D, EVERY, STEPS = 4, 5, 30
LOOKS = [0, 10, 20, 25, 30]  # steps whose looks have samples: of seven, one is all NaN, and one has other dimensions
NOTHING, OTHER, SOME = 2, 4, 3  # looks, from 1 on, that are all NaN, of other dimensions, and NaN in part


class Sample:
    """Samples with new seeds, some of them broken, by the number of the look."""

    def __init__(self):
        self.looks = 0

    def __call__(self):
        self.looks += 1
        rows = torch.from_numpy(np.random.default_rng([3, self.looks]).normal(size=(32, D)))
        if self.looks == OTHER:
            return rows[:, :2]
        rows[: {NOTHING: 32, SOME: 5}.get(self.looks, 0)] = torch.nan
        return rows


class NoNetwork:
    """A tracker without a network for the first three looks."""

    def __init__(self):
        self.calls, self.steps = 0, []

    def log(self, values, step=None):
        self.calls += 1
        if self.calls <= 3:
            raise ConnectionError("no route to host")
        if "course/diversity" in values:
            self.steps.append(step)


class Watched:
    """A callback whose looks meet each fault once, with what it told."""

    def __init__(self, *trackers, folder):
        self.lost = NoNetwork()
        monitor = fe.Monitor(np.random.default_rng(0).normal(size=(120, D)))
        (folder / "monitor.h5").mkdir()  # a monitor cannot be saved there
        self.after_step = fe.MonitorCallback(
            monitor, Sample(), self.lost, *trackers, every=EVERY, save=folder / "monitor.h5"
        )
        self.told, self.calls = [], 0

    def __call__(self, step):
        self.calls += 1
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.after_step(step)
        self.told += [str(one.message) for one in told]

    def check(self):
        """Assert that each fault was told, and that everything else arrived."""
        monitor = self.after_step.monitor
        assert monitor.steps == LOOKS == self.lost.steps and self.after_step.sample.looks == 7
        assert [one.name for one in monitor.alarms] == ["not finite"]
        for words in (
            "step 5: 32 of 32 samples are not finite",
            "step 10: 5 of 32 samples are not finite",
            "step 15 has no evaluation: the samples have 2 entries",
            "NoNetwork did not take this evaluation, which will be logged with the next: ConnectionError: no route",
            "the monitor was not saved to",
        ):
            assert any(words in one for one in self.told), (words, self.told)


class Net(torch.nn.Module):
    """A small network with its loss, as trainers take it."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(D, 1)

    def forward(self, x, y):
        return {"loss": torch.nn.functional.mse_loss(self.layer(x), y)}


class Batches(torch.utils.data.Dataset):
    """Samples of a line."""

    def __len__(self):
        return 512

    def __getitem__(self, place):
        x = torch.from_numpy(np.random.default_rng(place).normal(size=D).astype(np.float32))
        return {"x": x, "y": x.sum(0, keepdim=True)}


def looks_in_wandb(folder):
    """Steps of the looks in a run of W&B that was written offline, and the rows of everything else."""
    looks, others = [], []
    for row in rows_of_wandb(next(folder.rglob("*.wandb"))):
        if "course/diversity" in row:
            looks.append(row["course/step"])
        others.append({key: value for key, value in row.items() if not key.startswith(("course/", "_"))})
    return looks, [one for one in others if one]


BLOCK, HEADER = 32768, 7  # bytes of a block, and before each part of a record: checksum, size and kind


def rows_of_wandb(path):
    """Rows of the history in a file of W&B, which writes the end of it a moment after a run has finished."""
    for _ in range(300):
        records = [*records_of_wandb(path.read_bytes())]
        if any(one.WhichOneof("record_type") == "exit" for one in records):
            break
        time.sleep(0.2)
    histories = [one.history.item for one in records if one.WhichOneof("record_type") == "history"]
    return [{one.key or "/".join(one.nested_key): json.loads(one.value_json) for one in items} for items in histories]


def records_of_wandb(data):
    """Records in the bytes of a file of W&B: a log of LevelDB."""
    from wandb.proto import wandb_internal_pb2

    place, whole = HEADER, b""
    while place + HEADER <= len(data):
        left = BLOCK - place % BLOCK
        if left < HEADER:
            place += left
            continue
        size, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        if place + HEADER + size > len(data):
            return
        whole += data[place + HEADER : place + HEADER + size]
        place += HEADER + size
        if kind in (1, 4):  # a whole record, or the last part of it
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


def looks_in_tensorboard(folder):
    """Steps of the looks in files of TensorBoard."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(next(folder.rglob("events.out*")).parent))
    read.Reload()
    return [one.step for one in read.Scalars("course/diversity")]
