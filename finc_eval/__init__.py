"""finc-eval: which kinds of images does one generative model make more often than another?

The public API, re-exported. Names load on first use, so that importing the package stays fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from finc_eval import privacy as privacy

if TYPE_CHECKING:
    from finc_eval.approximation import approximation_error as approximation_error
    from finc_eval.approximation import theorem_1_bound as theorem_1_bound
    from finc_eval.cache import EmbeddingCache as EmbeddingCache
    from finc_eval.cards import available_cards as available_cards
    from finc_eval.cards import load_card as load_card
    from finc_eval.comparison import compare as compare
    from finc_eval.ensemble import ModelTable as ModelTable
    from finc_eval.ensemble import compare_models as compare_models
    from finc_eval.errors import FincEvalError as FincEvalError
    from finc_eval.extraction import extract as extract
    from finc_eval.feature_maps import CosineFeatures as CosineFeatures
    from finc_eval.feature_maps import RandomFourierFeatures as RandomFourierFeatures
    from finc_eval.files import load as load
    from finc_eval.metrics.suite import evaluate as evaluate
    from finc_eval.modes import Mode as Mode
    from finc_eval.privacy.audit_result import Audit as Audit
    from finc_eval.privacy.memorization import audit as audit
    from finc_eval.releases import match_releases as match_releases
    from finc_eval.results import Comparison as Comparison
    from finc_eval.samples import open_source as open_source
    from finc_eval.side_by_side import MethodTable as MethodTable
    from finc_eval.side_by_side import compare_methods as compare_methods
    from finc_eval.sides import reference_feature_map as reference_feature_map
    from finc_eval.signature import Signature as Signature
    from finc_eval.sketch import Sketch as Sketch
    from finc_eval.sweeps import Sweep as Sweep
    from finc_eval.sweeps import sweep_rho as sweep_rho
    from finc_eval.sweeps import sweep_sigma as sweep_sigma

_HOME = {
    "Audit": "privacy.audit_result",
    "Comparison": "results",
    "CosineFeatures": "feature_maps",
    "EmbeddingCache": "cache",
    "FincEvalError": "errors",
    "MethodTable": "side_by_side",
    "Mode": "modes",
    "ModelTable": "ensemble",
    "RandomFourierFeatures": "feature_maps",
    "Signature": "signature",
    "Sketch": "sketch",
    "Sweep": "sweeps",
    "approximation_error": "approximation",
    "audit": "privacy.memorization",
    "available_cards": "cards",
    "compare": "comparison",
    "compare_methods": "side_by_side",
    "compare_models": "ensemble",
    "evaluate": "metrics.suite",
    "extract": "extraction",
    "load": "files",
    "load_card": "cards",
    "match_releases": "releases",
    "open_source": "samples",
    "reference_feature_map": "sides",
    "sweep_rho": "sweeps",
    "sweep_sigma": "sweeps",
    "theorem_1_bound": "approximation",
}

__all__ = sorted((*_HOME, "privacy"))


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'finc_eval' has no attribute {name!r}")
    return getattr(import_module(f"finc_eval.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
