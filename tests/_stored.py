"""Objects that the tests of all workers share: the first worker that asks makes them, and all workers read them."""

import fcntl
import os
import pickle


def shared_folder(tmp_path_factory):
    """Return the folder of the whole run: that of all workers, or without workers that of the process."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "stored"
    folder.mkdir(exist_ok=True)
    return folder


def made_once(tmp_path_factory, name, make):
    """Return what `make(folder)` returned in the first worker that asked; the others wait, and read it.

    Each worker has a copy of its own, with the folder in common: no test may write to it.
    """
    place = shared_folder(tmp_path_factory)
    stored, folder = place / f"{name}.pickle", place / name
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stored.exists():
            folder.mkdir(exist_ok=True)
            whole = pickle.dumps(make(folder))
            stored.with_suffix(".new").write_bytes(whole)
            stored.with_suffix(".new").rename(stored)  # where making fails, the next worker makes it anew
    return pickle.loads(stored.read_bytes())
