"""Two sets in one space of which a metric is asked, and what a metric of that name is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from finc_eval.core.errors import FincEvalError
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import Embeddings
from finc_eval.metrics.gaussian import GaussianStatistics
from finc_eval.metrics.score import Score

if TYPE_CHECKING:
    from finc_eval.privacy.reference.sketch import PrivateSketch

Set = Embeddings | GaussianStatistics


@dataclass(frozen=True)
class Pair:
    """Two sets in one space, of which a metric called `name` is asked.

    Attributes:
        name: of the metric.
        gen: the generated set.
        ref: the reference; None for metrics of the generated set alone.
        test: a third set; None where none was given, or the metric takes none.
        device: where to compute.
        private: the private sketch that is the reference of private_mmd, in place of `ref`.
    """

    name: str
    gen: Set
    ref: Set | None
    test: Set | None
    device: str | None
    private: PrivateSketch | None = None

    def signature(self, *fields: tuple[str, object]) -> Signature:
        """What pins a value."""
        sizes = "/".join("?" if one.n is None else str(one.n) for one in (self.gen, self.ref) if one)
        return Signature(
            self.name,
            (
                ("n", sizes),
                ("fx", self.gen.space),
                *((name, str(value)) for name, value in fields),
                ("v", version("finc-eval")),
            ),
        )

    def rows(self) -> tuple[Embeddings, Embeddings]:
        """Both as embeddings.

        Raises:
            FincEvalError: one of them is known by its moments only.
        """
        if isinstance(self.gen, Embeddings) and isinstance(self.ref, Embeddings):
            return self.gen, self.ref
        raise FincEvalError(
            f"{self.name} needs the embeddings of both sets: moments are enough for Fréchet distances only"
        )

    def third(self) -> Embeddings:
        """The third set as embeddings.

        Raises:
            FincEvalError: there is none, or its moments only.
        """
        if isinstance(self.test, Embeddings):
            return self.test
        raise FincEvalError(
            f"{self.name} needs a third set: real samples that the generator has not seen, as test (--test on the "
            "command line), beside the training set as ref"
        )


@dataclass(frozen=True)
class Metric:
    """One name on the command line.

    Attributes:
        what: in a few words.
        compute: its scores, of two sets in one space.
        extractor: the card that its name means; None where any will do.
        output: the output of that card that it is of; None for the embedding.
        sets: those that it looks at: "gen", "ref" and "test"; with the last, ref is the training set. "private" is a
            private sketch in place of ref.
    """

    what: str
    compute: Callable[[Pair], list[Score]]
    extractor: str | None = None
    output: str | None = None
    sets: tuple[str, ...] = ("gen", "ref")
