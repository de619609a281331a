"""`SynthesisSettings`: the budget and the method of a synthetic table; `ImageSynthesisSettings` adds the network."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Literal, get_args

from finc_eval.core.checks import check_choice, check_count, check_fraction
from finc_eval.core.errors import UsageError
from finc_eval.core.record import about, by_name
from finc_eval.privacy.dp.guarantee import Guarantee, PrivacyOptions, PrivacySettings
from finc_eval.privacy.synthesis.methods import SYNTHESIS_METHODS, AnySynthesis, DpHp, SynthesisName

NetworkName = Literal["smooth", "fully-connected", "convolutional"]


@dataclass(frozen=True, kw_only=True)
class SynthesisSettings(PrivacySettings):
    """Budget and method of a synthetic table. Each field is also a keyword of `synthesize_table`.

    With epsilon=math.inf no noise is added. That is a baseline to compare with, it is not private, and a ledger refuses
    it.

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> settings = fe.privacy.SynthesisSettings(epsilon=1, method="dp-hp-few", count=500)
        >>> settings.steps, round(settings.guarantee.mu, 4)
        (300, 0.2681)
    """

    method: Annotated[
        AnySynthesis,
        about(
            "features to release: dp-hp, ours; dp-hp-few, first moments alone, for a table of a few hundred records; "
            "dp-hp-paper, the paper's sums and products; dp-merf, random Fourier features"
        ),
    ] = field(default_factory=DpHp)
    count: Annotated[int | None, about("number of synthetic records; default: as many as private records")] = None
    steps: Annotated[int, about("maximum number of steps of the fit")] = 300
    seed: Annotated[int, about("random seed of the generator and its samples; noise has no seed")] = 0

    def __post_init__(self) -> None:
        if self.epsilon != inf:
            super().__post_init__()
        self._store(
            delta=check_fraction("delta", self.delta),
            method=by_name("method", self.method, SYNTHESIS_METHODS),
            count=None if self.count is None else check_count("count", self.count),
            steps=check_count("steps", self.steps),
            seed=check_count("seed", self.seed, least=0),
        )

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee to each record.

        Raises:
            UsageError: ε is infinite.
        """
        if self.epsilon == inf:
            raise UsageError(
                "an infinite epsilon adds no noise, and a ledger holds private releases alone: pass a finite epsilon, "
                "or for a baseline that is not private ledger=None, in Python"
            )
        return super().guarantee

    def protection(self, ledger: object) -> Guarantee | None:
        """Return the guarantee to each record; None if ε is infinite, which a ledger refuses."""
        return None if self.epsilon == inf and ledger is None else self.guarantee


@dataclass(frozen=True, kw_only=True)
class ImageSynthesisSettings(SynthesisSettings):
    """Budget, method and network of a synthesis. Each field is also a keyword of `synthesize_images`.

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> fe.privacy.ImageSynthesisSettings(epsilon=3, steps=100).network
        'smooth'
    """

    network: Annotated[
        NetworkName,
        about(
            "generator of images: smooth makes low spatial frequencies with grain; fully-connected and convolutional "
            "are the paper's"
        ),
    ] = "smooth"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("network", self.network, get_args(NetworkName))


class SynthesisOptions(PrivacyOptions, total=False):
    """The fields of `SynthesisSettings` as keywords of a function."""

    method: AnySynthesis | SynthesisName
    count: int | None
    steps: int
    seed: int


class ImageSynthesisOptions(SynthesisOptions, total=False):
    """The fields of `ImageSynthesisSettings` as keywords of a function."""

    network: NetworkName
