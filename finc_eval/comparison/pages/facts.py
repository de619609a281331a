"""Facts of a comparison that several pages state: its method, its kernel, what stability is."""

from __future__ import annotations

from finc_eval.comparison.result import Comparison
from finc_eval.comparison.settings import METHODS, Settings

METHOD_NAMES = {name: method.title for name, method in METHODS.items()}  # names of the methods in prose


def kernel_facts(comparison: Comparison) -> list[tuple[str, object]]:
    """Return the settings of the kernel of a comparison, for a section."""
    settings = comparison.settings
    found: list[tuple[str, object]] = [
        ("Extractor", comparison.space),
        ("Mass ratio that counts, ρ", f"{settings.rho:g}"),
        ("Kernel", settings.kernel),
    ]
    if settings.sigma is not None:
        found.append(("Bandwidth of the Gaussian kernel, σ", f"{settings.sigma:.6g} ({comparison.sigma_rule})"))
        found.append(("Random frequencies, r", f"{settings.features:,}, seed {settings.seed}"))
    if settings.text is not None:
        found.append(("Vectors of the prompts, next to the embeddings", settings.text))
    return found


def stability(settings: Settings) -> str:
    """Return what the stability of a direction is, as the end of a sentence."""
    halves = "to each half of the samples"
    refits = (
        f"two refits, {halves}"
        if settings.kernel == "cosine"
        else (f"four refits, {halves} and with each half of the random frequencies")
    )
    return f"how much of its scores refits find again (R²), on average over {refits}; below 50 % do not give it a name."
