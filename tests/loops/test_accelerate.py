"""A monitor in a loop of accelerate that accumulates gradients and logs twice a step, with faults."""

from pathlib import Path

import torch
from _loops import LOOKS, STEPS, Batches, Net, Watched, looks_in_tensorboard, looks_in_wandb, needed

accelerate = needed("accelerate")
wandb = needed("wandb")
needed("tensorboard")


def test_a_loop_with_accumulation_goes_on_and_all_looks_arrive(tmp_path, monkeypatch):
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    accelerator = accelerate.Accelerator(
        gradient_accumulation_steps=3, log_with=["wandb", "tensorboard"], project_dir=str(tmp_path / "board"), cpu=True
    )
    accelerator.init_trackers("test")
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer, batches = accelerator.prepare(
        model, optimizer, torch.utils.data.DataLoader(Batches(), batch_size=4)
    )
    watched, global_step = Watched(accelerator, folder=tmp_path), 0
    for batch in batches:
        with accelerator.accumulate(model):
            loss = model(**batch)["loss"]
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        global_step += accelerator.sync_gradients
        accelerator.log({"loss": loss.item()}, step=global_step)
        watched(global_step)  # three times with one step
        accelerator.log({"lr": 0.01}, step=global_step)
        if global_step == STEPS:
            break
    folder = Path(wandb.run.dir).parent
    accelerator.end_training()
    assert global_step == STEPS and watched.calls > 2 * STEPS
    watched.check()
    looks, others = looks_in_wandb(folder)
    assert looks == looks_in_tensorboard(tmp_path / "board") == LOOKS
    assert len(others) == STEPS + 1 and all({"loss", "lr"} <= one.keys() for one in others)  # step 0, too
