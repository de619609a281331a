"""`PromptDifferences`: the prompts and words whose images differ between two sets, in content, diversity or fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from finc_eval.core.record import Record
from finc_eval.core.serialize import Shown
from finc_eval.core.words import join_words
from finc_eval.numerics.inference import BESIDE_ALPHA
from finc_eval.prompts.cells import PromptCell, PromptPlan
from finc_eval.prompts.prompt_sets import PromptSetGap
from finc_eval.prompts.text import Fit, ModelFit

What = Literal["content", "diversity", "fit"]

PROMPTS_SHOWN = 8  # prompts that a page and a terminal show, and cells whose pictures a page shows


@dataclass(frozen=True)
class PromptSet(Record):
    """The images of a prompt or a word in a set.

    Attributes:
        n: number of images.
        spread: root mean square distance of images of one prompt, over the distance of any two; None for one image.
        distinct: number of distinct images.
        vendi: effective number of images of a prompt (Vendi score, arXiv 2210.02410), mean over prompts; None if a
            prompt has one image, or very many.
        fit: mean CLIPScore of the images and their prompts; None if it is not measured.
        ids: ids of some of them.
    """

    n: int
    spread: float | None
    distinct: int
    vendi: float | None
    fit: float | None
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Prompt(Record):
    """A prompt, and how its images differ.

    Attributes:
        text: the prompt.
        difference: distance of the mean images of both sets, over the root mean square distance of any two images,
            without the part that chance makes.
        interval: 95 % interval of it, which holds by itself.
        p_value: p-value of "the images of this prompt have one law", adjusted for all prompts; None if there are
            too many images to permute.
        fit: how much better the first set's images fit the prompt; None if it is not measured.
        sets: its images, by label.
    """

    text: str
    difference: float
    interval: tuple[float, float]
    p_value: float | None
    fit: Fit | None
    sets: dict[str, PromptSet]


@dataclass(frozen=True)
class Word(Record, Shown):
    """A word or phrase of prompts whose images differ.

    Attributes:
        text: the phrase; "" for all prompts.
        what: "content" where the mean images differ in one way, "diversity" where images of a prompt are more or less
            alike, "fit" where images fit their prompts better in one set.
        prompts: number of prompts with it that no word before it has.
        difference: of content, as of a `Prompt`, in what its prompts have in common; of diversity, the mean of
            (a − b) / (a + b) over its prompts, where a and b are the mean squared distances of the images of a prompt;
            of fit, the mean difference of CLIPScores over its prompts.
        interval: 95 % interval of it, which holds by itself.
        p_value: p-value adjusted for all words.
        sets: images of its prompts, by label.
        examples: places of some of its prompts, by text.
        became: of content, what the first set's images look like: words of other prompts in quotes, such as “cat”,
            whose images of the second set are nearest, or a class; "" if neither describes most of them.
    """

    text: str
    what: What
    prompts: int
    difference: float
    interval: tuple[float, float]
    p_value: float
    sets: dict[str, PromptSet]
    examples: tuple[str, ...]
    became: str = ""

    @property
    def title(self) -> str:
        """The phrase in quotes, or "all prompts"."""
        return f"“{self.text}”" if self.text else "all prompts"

    def _summary(self) -> str:
        low, high = self.interval
        return f"{self.title}, {self.what}: {self.difference:.2f} [{low:.2f}, {high:.2f}], p={self.p_value:.2g}"


@dataclass(frozen=True)
class PromptDifferences(Record):
    """The words and prompts whose images differ between two sets.

    Attributes:
        column: the column of the prompts.
        words: words and phrases that differ, in the order in which they were found: the clearest first.
        cells: what pictures of prompts with a word have more often in one set, such as a look, the clearest first.
        tested: number of words and phrases that were tested.
        prompts: the prompts that differ most, at most 100.
        fits: how well the images of each set fit their prompts, by label; empty if it is not measured.
        fit: how much better the first set's images fit their prompts, paired by them; None if it is not measured.
        unmeasured: why the fit is not measured, or which ends of prompts it leaves out; "" if it is of all.
        plans: cells that are not decided, at most five, and how many more prompts with their words decide them.
        prompt_sets: how unlike the images are on two sets of prompts, if a column `prompt_set` or `fresh` names two.
        undivided: why such a column does not divide the prompts; "" if it does, or there is none.
    """

    column: str
    words: tuple[Word, ...]
    tested: int
    prompts: tuple[Prompt, ...]
    fits: dict[str, ModelFit] = field(default_factory=dict)
    fit: Fit | None = None
    unmeasured: str = ""
    cells: tuple[PromptCell, ...] = ()
    plans: tuple[PromptPlan, ...] = ()
    prompt_sets: tuple[PromptSetGap, ...] = ()
    undivided: str = ""

    @property
    def clear(self) -> tuple[Word, ...]:
        """The words at the level of all that a headline says in addition to kinds."""
        return tuple(word for word in self.words if word.p_value <= BESIDE_ALPHA)

    def shown(self, label: str) -> list[str]:
        """Return the ids of the images of a set that a page shows."""
        shown = [word.sets for word in self.words] + [prompt.sets for prompt in self.prompts[:PROMPTS_SHOWN]]
        tabled = [*self.cells[:PROMPTS_SHOWN], *(plan.cell for plan in self.plans)]
        return [name for sets in shown for name in sets[label].ids] + [
            name for cell in tabled for name in cell.sets[label]
        ]

    def say_prompt_sets(self, titles: Mapping[str, str]) -> Iterator[str]:
        """Say on which of two sets of prompts the images differ less, or why that is not known."""
        yield from (gap.sentence(titles) for gap in self.prompt_sets)
        if self.undivided:
            yield f"Sets of prompts are not compared: {self.undivided}."

    def sentences(self, titles: Mapping[str, str]) -> Iterator[str]:
        """Say which words differ, in sentences, with the titles of the sets by label."""
        first, second = titles
        content = [word for word in self.words if word.what == "content"]
        cells = {cell.word: cell for cell in reversed(self.cells) if cell.p_value <= BESIDE_ALPHA}
        shown = [cells[word.text] for word in content if word.text in cells and not word.became]
        yield from (cell.sentence(self.column, titles) for cell in shown)
        content = [word for word in content if word.became or word.text not in cells]
        named = [word for word in content if word.text]
        if like := [f"with {word.title} look like {word.became}" for word in named if word.became]:
            yield f"In {titles[first]}, images of {self.column}s {join_words(like)}."
        if unlike := [word.title for word in named if not word.became]:
            yield f"Images of {self.column}s with {join_words(unlike, 'or')} differ in content."
        if len(content) > len(named):
            others = "other " if named else ""
            yield f"Images of all {others}{self.column}s together differ in content."
        for word in self.words:
            where = f" with {word.title}" if word.text else ""
            if word.what == "diversity":
                label, other = (first, second) if word.difference < 0 else (second, first)
                numbers = ""
                if any(part.distinct < part.n for part in word.sets.values()):
                    here, rest = (f"{word.sets[name].distinct:,} of {word.sets[name].n:,}" for name in (label, other))
                    numbers = f": {here} are distinct ({titles[other]} {rest})"
                alike = "repeat" if numbers and word.sets[label].distinct < word.sets[label].n else "are more alike"
                yield f"In {titles[label]}, images of the same {self.column}{where} {alike}{numbers}."
            if word.what == "fit":
                yield f"In {titles[(first, second)[word.difference > 0]]}, images fit {self.column}s{where} less."
