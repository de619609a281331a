"""`Monitor`: follow a generator over the steps of its training, with alarms that hold at every evaluation."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from finc_eval.core.errors import IncompatibleError, check_fraction, check_seed
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import open_embeddings
from finc_eval.embeddings.set_info import notes_on
from finc_eval.embeddings.subset import Subset
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.findings.finding import Finding
from finc_eval.monitoring.basis import REPEAT, Basis, divide_reference
from finc_eval.monitoring.causes import Causes
from finc_eval.monitoring.columns import (
    by_name,
    follow_columns,
    measure_reference,
    notes_once,
    overlap_with,
    say_not_followed,
    spreads_of,
    with_columns,
    without_columns,
)
from finc_eval.monitoring.course import Course, course_of
from finc_eval.monitoring.evaluations import TRACED, EvaluationPart, Evaluations
from finc_eval.monitoring.evidence.classifiers import Classifiers
from finc_eval.monitoring.evidence.units import numbers_of, one_of_each, prompts_of
from finc_eval.monitoring.exchange import Array
from finc_eval.monitoring.findings import Followings, Follows
from finc_eval.monitoring.fixed.prompts import FixedPrompts
from finc_eval.monitoring.followed import COPIED, Alarm, CopiesAtStep
from finc_eval.monitoring.left_out import (
    NEW_SEEDS,
    find_left_out,
    say_left_out,
    say_same_seeds,
    show_left_out,
    split_broken,
    tell_broken,
    to_host,
    trace_all,
)
from finc_eval.monitoring.measuring import measure, nothing, with_repeats
from finc_eval.monitoring.needed import say_needed
from finc_eval.monitoring.seen import COPY, SeenSamples
from finc_eval.monitoring.shown import Strips
from finc_eval.monitoring.steps import check_step, step_text
from finc_eval.monitoring.stored import StoredMonitor
from finc_eval.naming.measured import left_out_columns
from finc_eval.numerics.inference import ALPHA
from finc_eval.prompts.text import fit_to_prompts

SAMPLES = 64  # samples of an evaluation, as long as there was none


class Monitor(StoredMonitor):
    """Follow a generator over the steps of its training, with alarms that hold at every evaluation.

    Each evaluation compares the samples of a step to the reference and to all evaluations before. The monitor follows
    the shares of the kinds of the reference, new kinds, repeats, the distance to the reference, diversity, and, of
    pictures, new parts and looks, such as saturation. If nothing changes, the probability that any alarm is ever
    raised is at most `alpha`, however many evaluations there are. Samples of the last 16 are kept, as embeddings.
    Memory grows by a few numbers an evaluation for each followed thing, and 16 for each of at most 512 samples.

    Draw new seeds at each evaluation. Samples of the same seeds are not independent of those of the evaluation before,
    and alarms would not hold. The same prompts at each evaluation are fine.

    Args:
        reference: samples of step 0, or real samples that the generator should be like: embeddings (n, d), array or
            tensor, or a set in any form that `compare` takes. At least 40; kinds follow from a third of them.
        train: training set of the generator, in any form that the reference may have; samples near it are copies.
            Default: copies of the reference count.
        prompts: prompt of each sample of the reference; default: its column "prompt", "caption" or "text".
        extractor: how to embed samples that are not embedded; see `compare`.
        text: how to embed prompts in the space of the samples, for the fit of samples to prompts: a card with a text
            tower, or the path of a file of vectors of the prompts; default: the text tower of the extractor, if any.
        alpha: probability of any false alarm.
        seed: random seed of the parts of the reference, of the kinds, and of ties.
        run: device, portions, threads and progress.

    Attributes:
        copies: samples that are also in the reference, by step; no alarm judges them.
        fixed_prompts: measurements of the pictures of fixed prompts, None without such pictures.

    Raises:
        DataError: the reference has fewer than 40 samples, or cannot be read.
        UsageError: a setting is out of range.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> rng = np.random.default_rng(0)
        >>> monitor = fe.Monitor(rng.normal(size=(500, 8)))
        >>> for step in range(10):
        ...     _ = monitor.update(step, rng.normal(size=(64, 8)) * (1 if step < 5 else 0.5))
        >>> {alarm.name for alarm in monitor.alarms} >= {"diversity"}
        True
        >>> all(alarm.step >= 5 for alarm in monitor.alarms)
        True
    """

    def __init__(
        self,
        reference: object,
        *,
        train: object = None,
        prompts: Sequence[str] | None = None,
        extractor: AnyExtractor = None,
        text: str | None = None,
        alpha: float = ALPHA,
        seed: int = 0,
        run: Run | None = None,
    ) -> None:
        self._extractor, self._text, self._run = extractor, text, Run.of(run)
        self.alpha, self.seed = check_fraction("alpha", alpha), check_seed(seed)
        one = self._open(reference, "reference")
        self.space = one.space
        own = prompts_of(one, prompts)
        fitted, rest = divide_reference(one, seed)
        originals = None if train is None else self._open(train, "train")
        self.basis = Basis.fit(one, fitted, seed, self._run, originals)
        self.columns = follow_columns(one, fitted, rest)
        self.prompts = frozenset() if own is None else frozenset(own)
        numbers, fits = None if own is None else numbers_of(own), self._fits(one, own)
        rng = np.random.default_rng([seed, 1])
        whole, middles, self.repeats = measure_reference(
            one, (fitted, rest), self.basis, self.columns, rng, prompts=numbers, fits=fits, run=self._run
        )
        self.history = Evaluations.of(whole, middles, Classifiers.of(one, len(self.basis.nodes), seed))
        self.seen = SeenSamples.of(trace_all(one, self.basis, self._run), self.basis.repeat * COPY / REPEAT)
        self._raised: list[Alarm] = []
        self._described: tuple[tuple[int, int], list[Alarm]] = (0, 0), []
        self.copies: list[CopiesAtStep] = []
        self.fixed_prompts: FixedPrompts | None = None
        self.follows: Follows = {}
        self.strips, self._traces = Strips(whole.shown), np.empty((0, 0))
        self.warnings = [*notes_on("the reference", one), *left_out_columns({"the reference": one})]

    @property
    def alarms(self) -> list[Alarm]:
        """Alarms so far, in the order of their steps, each with its start and its size by all evaluations so far."""
        state = self.history.count, len(self._raised)
        if self._described[0] != state:
            self._described = state, self._followings.described(self._raised)
        return [*self._described[1]]

    @property
    def _followings(self) -> Followings:
        words = self.strips.last.words | dict(zip(self.basis.names, self.basis.words, strict=True))
        words[COPIED] = self.basis.originals.words
        return Followings(self.history, self.names, words, by_name(self.columns))

    @property
    def steps(self) -> list[float]:
        """Steps of all evaluations."""
        found: list[float] = self.history.steps.tolist()
        return found

    def update(
        self, step: float, samples: object, *, prompts: Sequence[str] | None = None, fixed: object = None
    ) -> list[Alarm]:
        """Evaluate the samples of a step, and return the new alarms.

        Samples that are not finite are counted, left out, and an alarm. Samples of the reference are left out with a
        warning. An evaluation that is the reference, a part of it, or an earlier evaluation is left out as a whole.

        Args:
            step: number of the step, larger than those before.
            samples: samples of this step, in any form that the reference may have.
            prompts: prompt of each sample; default: the column of the samples.
            fixed: pictures of the same prompts and seeds at every evaluation, by prompt, {"a cat": picture}, or in any
                form of samples, whose prompts or ids pair them. They are compared pair by pair; see `fixed_prompts`.
                If any of them is not finite, none of this step is compared, with a warning.

        Raises:
            UsageError: the step is not a number, or not after the last one.
            IncompatibleError: the samples are of another extractor, or have another number of entries, or the fixed
                pictures are not of the same prompts.
        """
        step = check_step(step, self.steps)
        own = None if fixed is None else self._with_fixed(step, fixed)
        found = self.add(step, [self.measure(samples, prompts=prompts)])
        self.fixed_prompts = own or self.fixed_prompts
        return found

    def _with_fixed(self, step: float, fixed: object) -> FixedPrompts | None:
        prompts, pictures = ([*fixed], [*fixed.values()]) if isinstance(fixed, Mapping) else (None, fixed)
        pictures, unread = split_broken(to_host(pictures))
        samples = None if unread is not None else self._open_alike(pictures, "fixed", "fixed pictures")
        if samples is None or not samples.is_finite().all():
            text = f"step {step_text(step)}: no fixed picture is compared, as some are not finite (NaN or Inf)"
            self.warnings.append(text)
            warnings.warn(text, stacklevel=3)
            return None
        spreads = spreads_of(self.names, self.history, self.columns)
        known = self.fixed_prompts or FixedPrompts.of(samples, prompts, spreads)
        return known.with_step(step, samples, prompts, self.basis, self.alpha, self._run)

    def measure(self, samples: object, *, prompts: Sequence[str] | None = None) -> EvaluationPart:
        """Measure the samples that this process has of an evaluation; `add` takes the parts of all processes.

        A tensor of embeddings on a device is copied once, and everything else is computed on the host.

        Args:
            samples: samples, in any form that the reference may have.
            prompts: prompt of each sample; default: the column of the samples.
        """
        samples, unread = split_broken(to_host(samples))
        if unread is not None and unread.all():
            return replace(self._nothing, broken=len(unread))
        one = self._open_alike(samples, "samples", "samples")
        if unread is not None and prompts is not None and len(prompts) == len(unread):
            prompts = [prompt for prompt, is_broken in zip(prompts, unread, strict=True) if not is_broken]
        own, notes = prompts_of(one, prompts), (*notes_on("the evaluation", one), *say_not_followed(self.columns, one))
        broken, known = find_left_out(one, self.basis, self.seen, self._run)
        kept = np.flatnonzero(~(broken | known))
        count = int(broken.sum()) + (0 if unread is None else int(unread.sum()))
        shown = show_left_out(one, broken, known)
        left_out = replace(self._nothing, broken=count, known=int(known.sum()), notes=notes, shown=shown)
        if not len(kept):
            return left_out
        if len(kept) < one.n:
            one, own = Subset(one, kept), None if own is None else [own[row] for row in kept.tolist()]
        numbers = None if own is None else numbers_of(own)
        is_stratified = own is not None and frozenset(own) == self.prompts
        seed = np.frombuffer(one.rows_at(np.arange(1)).cpu().numpy().tobytes()[:8].ljust(8, b"\0"), np.uint32).tolist()
        alone = None if is_stratified else numbers
        rng = np.random.default_rng([self.seed, self.history.count, *seed])
        run, middles = replace(self._run, device="cpu"), without_columns(self.history.middles, self.columns)
        fits, asked = self._fits(one, own), self.history.classifiers
        found = measure(
            one, self.basis, rng, prompts=numbers, alone=alone, fits=fits, run=run, middles=middles, classifiers=asked
        )
        counted = None if alone is None else one_of_each(alone, rng)
        return left_out + with_columns(found, self.columns, one, counted)

    @property
    def _nothing(self) -> EvaluationPart:
        """The part of a process whose samples are all left out."""
        return with_columns(nothing(self.basis), self.columns, None, None)

    def add(self, step: float, parts: Iterable[EvaluationPart]) -> list[Alarm]:
        """Evaluate a step by the parts of all processes, and return the new alarms.

        Args:
            step: number of the step, larger than those before.
            parts: what `measure` returned on each process, such as `torch.distributed.all_gather_object` collects it.

        Raises:
            UsageError: the step is not a number, or not after the last one, or the parts are not a list of parts.
            IncompatibleError: a part was measured by another monitor.
        """
        step = check_step(step, self.steps)
        whole = self.history.join(parts)
        self.warnings += [f"step {step_text(step)}: {note}" for note in notes_once(whole.notes, self.warnings)]
        seen = self.seen.seen_before(whole.traces, np.minimum(self.history.samples, TRACED))
        said, is_left_out = say_left_out(step, whole, self.steps, seen)
        for text in said:
            self.warnings.append(text)
            warnings.warn(text, stacklevel=3)
        self.copies += [CopiesAtStep(step, whole.known, whole.brought)] if whole.known else []
        self.strips.add_left_out(whole.shown)
        found = tell_broken(step, whole, self._raised)
        if not is_left_out:
            is_new, rng = self._warn_of_seeds(step, whole), np.random.default_rng([self.seed, self.history.count, 1])
            whole, self.repeats, score = with_repeats(whole, self.basis, self.repeats, rng, is_new=is_new)
            self.history.add(step, whole, self.seed, score)
            self.seen = self.seen.with_evaluation(whole.traces)
            self.strips.add(step, whole.shown)
            found += self._new_alarms(step)
        self._raised += found
        return found

    def _warn_of_seeds(self, step: float, whole: EvaluationPart) -> bool:
        """Return whether samples are new; warn, once, of those of an earlier set, slightly changed."""
        reference = self.seen.reference[: len(whole.traces)]
        text = say_same_seeds(step, whole.traces, self._traces, reference, self.basis)
        if text and not any(one.endswith(NEW_SEEDS) for one in self.warnings):
            self.warnings.append(text)
            warnings.warn(text, stacklevel=4)
        self._traces = whole.traces
        return not text

    def _new_alarms(self, step: float) -> list[Alarm]:
        """Return an alarm for each thing with enough evidence that follows from nothing with an alarm."""
        told = self.alarms
        new = self._followings.reached(step, told, self.alpha)
        scored = [one.name for one in self.columns if not one.is_flag]
        overlap = overlap_with(self.columns, self.basis.overlap)
        chosen, earlier = Causes(self.history, self.names, overlap, scored).choose(new, told, self.follows)
        for alarm, cause in (*chosen, *reversed(earlier)):  # of several causes, the first counts
            if alarm is cause:
                self.follows.pop(alarm.name, None)
            elif not self.basis.overlap(alarm.name, cause.name):
                self.follows[alarm.name] = cause.name, alarm.finding
        return [alarm for alarm, cause in chosen if alarm is cause]

    def _fits(self, one: Embeddings, prompts: list[str] | None) -> Array | None:
        """Return the fit of each sample to its prompt; None without prompts or a text tower."""
        return None if prompts is None else fit_to_prompts(one, prompts, self._text, self._run)

    def _open_alike(self, source: object, label: str, words: str) -> Embeddings:
        """Open samples, and check that they have as many entries as the reference."""
        one = self._open(source, label)
        if one.dim != self.basis.dim:
            raise IncompatibleError(
                f"the {words} have {one.dim} entries per embedding, and the reference {self.basis.dim}: extract both "
                "with the same extractor"
            )
        return one

    def _open(self, source: object, label: str) -> Embeddings:
        space = getattr(self, "space", None)
        spaces = () if space is None else (space,)
        return open_embeddings({label: source}, self._extractor, self._run, spaces)[label]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the alarms, each cause once, the largest first, and copies of the reference."""
        kinds = self.basis.kind_ids
        return self._followings.findings(self.alarms, self.copies, self.follows, self.strips.ids_of, kinds)

    @property
    def result(self) -> Course:
        """The course of everything so far, as a result: page, JSON, Markdown, CSV."""
        shown = self.strips.pictures, self.basis.noise, self.needed, self.alpha, self.warnings, self.copies
        spreads = spreads_of(self.names, self.history, self.columns)
        fixed = None if self.fixed_prompts is None else self.fixed_prompts.course
        return course_of(self.history, spreads, self.alarms, self.findings, *shown, self.basis.unions, fixed)

    @property
    def keep(self) -> float | None:
        """Step to keep; None without an evaluation, and if all of them copy, repeat or have collapsed."""
        return self.result.keep

    @property
    def needed(self) -> str:
        """Changes that evaluations of this size can find, in a sentence; before the first of them, of 64 samples."""
        history = self.history
        samples = int(history.samples[-1]) if history.count else SAMPLES
        counted = int(history.reference[0, 1])
        return say_needed(counted, samples, int(history.is_followed.sum()), self.alpha)

    def to_html(self, path: str | Path) -> Path:
        """Write the page: the course of each followed thing with its alarms, and which step to keep.

        Args:
            path: file to write.
        """
        return self.result.to_html(path)

    def __repr__(self) -> str:
        return f"Monitor({plural(self.history.count, 'evaluation')}, {plural(len(self.alarms), 'alarm')})"
