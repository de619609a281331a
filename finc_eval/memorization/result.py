"""What an audit found: three blocks, none of which stands for another, as a document."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finc_eval.comparison.set_info import SetInfo
from finc_eval.core.errors import FincEvalError
from finc_eval.core.serialize import Document
from finc_eval.core.signature import Signature
from finc_eval.core.storage import write_text
from finc_eval.memorization.attacks import Attack
from finc_eval.memorization.copying import Measure, MeasureName
from finc_eval.memorization.power import Power
from finc_eval.memorization.stated import Stated
from finc_eval.memorization.strata import Kind

if TYPE_CHECKING:
    from finc_eval.samples import Samples

SCHEMA = 1

LEVEL = 0.95
"""Of intervals; those of all attacks hold together."""

ALPHA = 0.05
"""Adjusted p-value up to which copying counts as found."""


@dataclass(frozen=True)
class Pair:
    """A generated sample and the training sample nearest to it.

    Attributes:
        gen, train: their ids.
        distance: between them; 0 if they have one embedding.
        calibrated: the distance over its mean to the nearest training samples; small for a copy, about 1 for a sample
            that is as near to many.
        fresh_share: of fresh samples that are as near to the training set by that measure.
        kind: id of the kind that the generated sample is of; None where there are none.
    """

    gen: str
    train: str
    distance: float
    calibrated: float
    fresh_share: float
    kind: str | None


@dataclass(frozen=True)
class Copying:
    """The first block: are samples nearer to the training set than fresh ones are?

    Attributes:
        measures: each beside its control.
        exact: generated samples with the very embedding of a training sample, and how many fresh ones have it.
        pairs: the most suspicious ones, those first.
        kinds: of training samples, those whose copies stand out most first.
        power: of the test by calibrated distance, at α over the number of measures.
        level: at which the power was computed: what an adjusted p-value of α takes at worst.
    """

    measures: tuple[Measure, ...]
    exact: tuple[int, int]
    pairs: tuple[Pair, ...]
    kinds: tuple[Kind, ...]
    power: tuple[Power, ...]
    level: float

    @property
    def found_by(self) -> tuple[Measure, ...]:
        """The measures by which copying is found."""
        return tuple(measure for measure in self.measures if measure.adjusted <= ALPHA)

    @property
    def memorized_kinds(self) -> tuple[Kind, ...]:
        """The kinds in which copying is found."""
        return tuple(kind for kind in self.kinds if kind.p_value <= ALPHA)

    def measure(self, name: MeasureName) -> Measure:
        """The measure of this name.

        Raises:
            FincEvalError: it could not be computed.
        """
        for measure in self.measures:
            if measure.name == name:
                return measure
        raise FincEvalError(f"{name} was not computed: see the audit's warnings")


@dataclass(frozen=True, eq=False)
class Audit(Document):
    """What an audit found. It is no guarantee: copies and attacks that it does not know of it does not see.

    Attributes:
        copying: whether samples are copies.
        attacks: what attacks by generated samples tell about members; their intervals hold together.
        stated: a stated guarantee beside what the attacks got; None if none was stated.
        gen, train, holdout: the sets.
        reference: of DOMIAS; None without it.
        space: the extractor, as name@digest.
        warnings: what to know before trusting the numbers.
        signature: pins everything that changes the numbers save the generated set.
    """

    copying: Copying
    attacks: tuple[Attack, ...]
    stated: Stated | None
    gen: SetInfo
    train: SetInfo
    holdout: SetInfo
    reference: SetInfo | None
    space: str
    warnings: tuple[str, ...]
    signature: Signature

    @property
    def strongest(self) -> Attack:
        """The attack with the highest lower bound of ε, and of those without one, that of its AUC.

        A few copies betray a few members surely, which an AUC does not show.
        """
        found = [(attack.statistics.epsilon_lower_bound, attack.statistics.auc_interval[0]) for attack in self.attacks]
        return self.attacks[found.index(max(found))]

    def to_dict(self) -> dict[str, Any]:
        """The three blocks as plain JSON types; `schema` numbers the layout."""
        copying = self.copying
        return {
            "program": "finc-eval",
            "version": version("finc-eval"),
            "schema": SCHEMA,
            "signature": str(self.signature),
            "space": self.space,
            "sets": {
                name: None if info is None else _info_dict(info)
                for name, info in (
                    ("gen", self.gen),
                    ("train", self.train),
                    ("holdout", self.holdout),
                    ("reference", self.reference),
                )
            },
            "warnings": list(self.warnings),
            "copying": {
                "measures": [measure.to_dict() for measure in copying.measures],
                "found_by": [measure.name for measure in copying.found_by],
                "exact_copies": {"generated": copying.exact[0], "fresh": copying.exact[1]},
                "pairs": [vars(pair) for pair in copying.pairs],
                "kinds": [kind.to_dict() for kind in copying.kinds],
                "power": {"level": copying.level, "planted": [vars(power) for power in copying.power]},
            },
            "attackability": {
                "level": LEVEL,
                "attacks": [attack.to_dict() for attack in self.attacks],
                "strongest": self.strongest.name,
            },
            "stated_guarantee": None if self.stated is None else self.stated.to_dict(),
        }

    def to_html(
        self, path: str | Path, *, gen_samples: Samples | None = None, train_samples: Samples | None = None
    ) -> Path:
        """Write the page: one self-contained HTML file with the most suspicious pairs as pictures.

        Args:
            path: the file to write.
            gen_samples: where the generated samples are now, if not where they were embedded from.
            train_samples: the same for the training samples.

        Raises:
            FincEvalError: when samples that were passed cannot be opened, or the file cannot be written.
        """
        # The page is drawn by the layer above, which is loaded only when it is asked for.
        from finc_eval.report.audit import render_audit

        self.gen.check_samples(gen_samples)
        self.train.check_samples(train_samples)
        return write_text(path, render_audit(self, gen_samples=gen_samples, train_samples=train_samples))

    def __repr__(self) -> str:
        found = ", ".join(measure.name for measure in self.copying.found_by) or "no measure"
        best = self.strongest
        return (
            f"Audit(copying found by {found}; {len(self.copying.memorized_kinds)} kinds memorized; strongest attack "
            f"{best.name}, AUC {best.statistics.auc:.3f})"
        )

    def _repr_html_(self) -> str:
        from finc_eval.report.audit import render_audit_fragment

        return render_audit_fragment(self)


def _info_dict(info: SetInfo) -> dict[str, Any]:
    return {"name": info.name, "source": info.source, "n": info.n, "digest": info.digest}
