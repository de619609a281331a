"""A monitor in Lightning's Trainer with three loggers, which accumulates gradients, with faults."""

import csv
from pathlib import Path

import torch
from _loops import LOOKS, STEPS, Batches, Net, Watched, looks_in_tensorboard, looks_in_wandb, needed

lightning = needed("lightning")
needed("wandb")
needed("tensorboard")
from lightning.pytorch import loggers  # noqa: E402  # after the check that it is there


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, batch, _):
        loss = self.net(**batch)["loss"]
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Watch(lightning.Callback):
    """The callback of docs/monitor_loops.md: batches of one optimizer step have one `global_step`."""

    def __init__(self, after_step):
        self.after_step = after_step

    def on_train_batch_end(self, trainer, *_):
        self.after_step(trainer.global_step)


def test_lightning_goes_on_and_all_looks_arrive(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    made = [
        loggers.WandbLogger(project="test", save_dir=tmp_path, offline=True),
        loggers.TensorBoardLogger(tmp_path / "board"),
        loggers.CSVLogger(tmp_path / "csv"),
    ]
    watched = Watched(*made, folder=tmp_path)
    trainer = lightning.Trainer(
        max_steps=STEPS,
        accumulate_grad_batches=3,
        log_every_n_steps=1,
        logger=made,
        callbacks=[Watch(watched)],
        accelerator="cpu",
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(Batches(), batch_size=4))
    folder = Path(made[0].experiment.dir).parent
    made[0].experiment.finish()
    assert trainer.global_step == STEPS and watched.calls == 3 * STEPS
    watched.check()
    looks, others = looks_in_wandb(folder)
    assert looks == looks_in_tensorboard(tmp_path / "board") == LOOKS
    assert sum("loss" in one for one in others) >= STEPS
    with next((tmp_path / "csv").rglob("metrics.csv")).open() as file:
        rows = [row for row in csv.DictReader(file) if row.get("course/diversity")]
    assert [int(row["step"]) for row in rows] == LOOKS
