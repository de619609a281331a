"""Tables and JSON for the benchmarks."""

import json
import platform
from pathlib import Path

import torch


def record(name, rows, notes=""):
    """Print rows (dicts with the same keys) as a Markdown table and write them to results/NAME.json."""
    columns = list(rows[0])
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(row[column]) for column in columns) + " |")
    out = Path(__file__).parent / "results" / f"{name}.json"
    out.parent.mkdir(exist_ok=True)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    environment = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": device,
        "threads": torch.get_num_threads(),
    }
    out.write_text(
        json.dumps({"benchmark": name, "notes": notes, "environment": environment, "rows": rows}, indent=1) + "\n"
    )
