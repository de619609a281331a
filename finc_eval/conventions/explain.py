"""`explain`: which conventions give a number that somebody else printed, for the same samples or others like them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from finc_eval.conventions.opened import open_values
from finc_eval.conventions.quoted import Quoted
from finc_eval.conventions.search import AS_IS, Landing, Search
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.core.serialize import Shown
from finc_eval.core.words import join_words
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.numerics.inference import normal_quantile
from finc_eval.numerics.precision import arithmetic


@dataclass(frozen=True)
class Explanation(Record, Shown):
    """Conventions that give the number.

    Attributes:
        conventions: what differs from `metrics`, in plain words; the first text says so if nothing does.
        value: number under these conventions, of the samples that were given.
        interval: numbers that as many other generated samples of the same law would give with 95 %, against the same
            reference; None if the error of the metric is not known.
        is_exact: whether `value` is the number in all its printed digits; otherwise `interval` holds it.
        by_chance: part of the numbers from half to twice this number that it or an earlier convention would explain.
    """

    conventions: tuple[str, ...]
    value: float
    interval: tuple[float, float] | None
    is_exact: bool
    by_chance: float

    def _summary(self) -> str:
        return f"{self.value:.6g}: {join_words(self.conventions)}"


class Explanations(list[Explanation]):
    """What `explain` found, the best first; empty if nothing fits.

    Attributes:
        quoted: number to explain, as it was given.
        metric: name of the metric.
        as_is: number that `metrics` gives, with its interval.
        tried: number of conventions, and of pairs of conventions, that were tried.
        not_tried: what was not tried, and why.
    """

    def __init__(
        self,
        found: Iterable[Explanation],
        *,
        quoted: str,
        metric: str,
        as_is: Explanation,
        tried: int,
        not_tried: tuple[str, ...],
    ) -> None:
        super().__init__(found)
        self.quoted, self.metric, self.as_is = quoted, metric, as_is
        self.tried, self.not_tried = tried, not_tried


@arithmetic()
def explain(
    value: float | str,
    gen: object,
    ref: object,
    metric: str = "fd",
    *,
    extractor: AnyExtractor = None,
    run: Run | None = None,
) -> Explanations:
    """Find the conventions under which these samples give a number that somebody else printed.

    Conventions that need no other embeddings come first: which samples, halves and folders of the reference, divisors,
    subsets, the bias, factors. Then the samples are embedded again as JPEG, resized or cropped otherwise, with
    exchanged colors; then random draws with usual seeds; then two conventions at a time. The search ends with the first
    of these steps that explains the number.

    A convention explains a number if it gives all printed digits, or if other samples of the same generator would give
    it with 95 %. It is left out if the conventions up to it explain too many of the numbers from half to twice this
    number: more than 3 % by all digits, or 2 % by other samples. So a number with two digits has no explanation.

    Args:
        value: the number as it was printed: "28.10" as text keeps its last digit.
        gen: generated set, as `metrics` takes it; samples for conventions of pixels.
        ref: reference set, in the same forms.
        metric: name of a metric of two sets.
        extractor: how to embed sets of samples; see `metrics`.
        run: device, portions, threads and progress of the computation.

    Returns:
        A list, the best explanation first, and empty if nothing fits.

    Raises:
        UsageError: the number or the name of the metric is wrong, or the metric needs a third set.
        DataError: a set cannot be opened, or the metric cannot be computed.
        IncompatibleError: the metric is defined on another extractor.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(300)
        >>> theirs = fe.metrics.fd(gen[:200], ref).value
        >>> found = fe.explain(f"{theirs:.4f}", gen, ref)
        >>> found[0].conventions
        ('the first 200 generated samples',)
        >>> fe.explain(12.34567, gen, ref)
        []
    """
    quoted, run = Quoted.of(value), Run.of(run)
    values, ids, untried = open_values(gen, ref, metric, extractor, run)
    search = Search(quoted, values, ids, run)
    landings = search.landings()
    return Explanations(
        [_explanation(search, landing) for landing in landings],
        quoted=quoted.text,
        metric=metric,
        as_is=_explanation(search, search.as_is),
        tried=search.tried,
        not_tried=(*untried, *search.not_tried),
    )


def _explanation(search: Search, landing: Landing) -> Explanation:
    error = search.error(landing)
    reach = None if error is None else normal_quantile() * error
    return Explanation(
        conventions=tuple(convention.text for convention in landing.conventions) or (AS_IS,),
        value=landing.value,
        interval=None if reach is None else (landing.value - reach, landing.value + reach),
        is_exact=landing.is_exact,
        by_chance=landing.by_chance,
    )
