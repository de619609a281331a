"""`finc-eval doctor`: what the installation consists of."""

from __future__ import annotations

from finc_eval.cli.options import Json
from finc_eval.cli.output import print_json
from finc_eval.doctor.diagnosis import Diagnosis, diagnose
from finc_eval.report.terminal import print_table


def doctor(as_json: Json = False) -> None:
    """Say what this installation is made of: versions, devices and folders."""
    found = diagnose()
    if as_json:
        print_json(found)
    else:
        print_diagnosis(found)


def print_diagnosis(diagnosis: Diagnosis) -> None:
    """Print a diagnosis as a table."""
    rows = [[name, version or "not installed"] for name, version in diagnosis.versions.items()]
    rows.append(["CUDA", diagnosis.cuda or "torch is built without"])
    rows += [["device", device] for device in diagnosis.devices]
    for folder in diagnosis.folders:
        state = f"{folder.used / 1e9:.2f} GB" if folder.exists else "not made yet"
        access = "" if folder.writable else ", cannot be written"
        rows.append([folder.purpose, f"{folder.path}: {state}, {folder.free / 1e9:.0f} GB free{access}"])
    print_table("This installation", ["what", "here"], rows)
