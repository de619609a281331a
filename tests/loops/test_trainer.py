"""A monitor in transformers' Trainer, with faults in its looks, its tracker and its file."""

from pathlib import Path

from _loops import LOOKS, STEPS, Batches, Net, Watched, looks_in_tensorboard, looks_in_wandb, needed

transformers = needed("transformers")
wandb = needed("wandb")
needed("tensorboard")
from torch.utils.tensorboard import SummaryWriter  # noqa: E402  # after the check that it is there


class Watch(transformers.TrainerCallback):
    """The callback of docs/monitor_loops.md, and further calls of a step: the loop accumulates, too."""

    def __init__(self, after_step):
        self.after_step = after_step

    def on_step_end(self, arguments, state, control, **_):
        if state.is_world_process_zero:
            self.after_step(state.global_step)

    on_substep_end = on_step_end


def test_trainer_goes_on_and_all_looks_arrive(tmp_path, monkeypatch):
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    with SummaryWriter(str(tmp_path / "board")) as writer:
        watched = Watched(wandb, writer, folder=tmp_path)
        trainer = transformers.Trainer(
            model=Net(),
            args=transformers.TrainingArguments(
                str(tmp_path / "out"),
                max_steps=STEPS,
                gradient_accumulation_steps=3,
                per_device_train_batch_size=4,
                logging_steps=1,
                report_to="wandb",
                save_strategy="no",
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=Batches(),
            callbacks=[Watch(watched)],
        )
        trainer.train()
    folder = Path(wandb.run.dir).parent
    wandb.finish()
    assert trainer.state.global_step == STEPS and watched.calls == 3 * STEPS
    watched.check()
    looks, others = looks_in_wandb(folder)
    assert looks == looks_in_tensorboard(tmp_path / "board") == LOOKS
    assert sum("train/loss" in one for one in others) == STEPS  # nothing of the loop's own is lost
