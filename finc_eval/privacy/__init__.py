"""Differential privacy, and audits of it: private sketches, data generation, and what attacks can tell."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from finc_eval.privacy.gaussian import Guarantee as Guarantee
    from finc_eval.privacy.ledger import Ledger as Ledger
    from finc_eval.privacy.private_release import release as release
    from finc_eval.privacy.private_sketch import PrivateSketch as PrivateSketch
    from finc_eval.privacy.synthesis import synthesise_images as synthesise_images
    from finc_eval.privacy.synthesis import synthesise_table as synthesise_table
    from finc_eval.privacy.tabular import Table as Table
    from finc_eval.privacy.transform import PublicTransform as PublicTransform

_HOME = {
    "Guarantee": "gaussian",
    "Ledger": "ledger",
    "PrivateSketch": "private_sketch",
    "PublicTransform": "transform",
    "Table": "tabular",
    "release": "private_release",
    "synthesise_images": "synthesis",
    "synthesise_table": "synthesis",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'finc_eval.privacy' has no attribute {name!r}")
    return getattr(import_module(f"finc_eval.privacy.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
