"""`fields_of`: the numbers in a name, each with the word that goes with it, and what this word says of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class NumberKind(Enum):
    """Kinds of numbers in the names of checkpoints, by their words."""

    STEP = "step"  # a count of steps
    EPOCH = "epoch"  # a count of epochs, which is coarser
    PLAIN = "plain"  # any other number: a step, if it is the only number that differs
    WEAK = "weak"  # a version or a date: it orders names that differ in nothing else
    NEVER = "never"  # a setting, or a result such as a loss


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STEP_WORDS = _words(
    "step steps gs iter iters iteration iterations it its itr update updates tick ticks kimg kimgs mimg nimg"
)
EPOCH_WORDS = _words("epoch epochs ep e")
CHECKPOINT_WORDS = _words(
    "ckpt ckpts checkpoint checkpoints chkpt chkpts snapshot snapshots model net network weights save saved state"
)
ENDS = _words("final last best latest end")  # words of names whose number is a step if all have it
COUNTED = _words("tokens tok samples images imgs examples")  # behind a factor: 500Mtokens
WEAK_WORDS = _words("v ver version")
RESULTS = _words(
    "loss losses fid kid fd fvd fad mmd cmmd is acc accuracy psnr ssim lpips clip score reward metric val valid "
    "eval err error mse mae rmse bleu ppl perplexity precision recall auc map iou miou top dice wer nll elbo bpd"
)
SETTINGS = _words(
    "seed seeds lr wd cfg guidance scale strength temp temperature bs batchsize size sizes res resolution px "
    "width height dim dims rank ranks alpha beta sigma decay rate fps x gpu gpus node nodes worker workers "
    "proc device cuda world fold folds run runs exp experiment trial trials job jobs task shard part split "
    "dropout cond hidden heads layers"
)
ENDINGS = {
    NumberKind.STEP: ("step", "steps", "iter", "iters", "iteration", "iterations"),
    NumberKind.EPOCH: ("epoch", "epochs"),
    NumberKind.NEVER: ("loss", "seed", "score", "acc"),
}  # ends of words that are written together, such as "globalstep"

GROUPABLE = {NumberKind.STEP, NumberKind.PLAIN}  # kinds of words in front of a number such as 10_000

UNITS = {"k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6, "B": 1e9, "G": 1e9}
PIXELS = _words("px p fps bit gb mb hz x")  # units of settings

DAY = r"(?:19|20)[0-9]{2}(?P<s>[-_.]?)(?:0[1-9]|1[0-2])(?P=s)(?:0[1-9]|[12][0-9]|3[01])"
TIME = r"[-_T. ]?(?:[01][0-9]|2[0-3])(?P<t>[-_:.]?)[0-5][0-9](?:(?P=t)[0-5][0-9])?"
DATE = re.compile(rf"(?<![0-9A-Za-z]){DAY}(?:{TIME})?(?![0-9])|(?<![0-9A-Za-z])1[0-9]{{9}}(?![0-9])")
UUID = re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9a-fA-F])")
HEX = re.compile(r"(?<![0-9A-Za-z])(?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{6,}(?![0-9A-Za-z])")
PLAIN_HEX = re.compile(r"[a-fA-F]+[0-9]+|[0-9]+[a-fA-F]+|[0-9]+[eE][0-9]{1,2}")  # a word and a number, or 1000e4
SIZE = re.compile(r"(?<![0-9A-Za-z])[0-9]+(?:[xX×][0-9]+)+(?:px|p)?(?![0-9])")  # 512x512
RUN = re.compile(r"(?P<word>[A-Za-z]*)[^A-Za-z0-9]*?(?<![0-9])(?<![0-9][.,])(?P<digits>[0-9]+(?:_[0-9]+)+)(?![0-9])")
GROUPED = re.compile(r"(?<![0-9])(?<![0-9][.,])[0-9]{1,3}(?:_[0-9]{3})+(?![0-9])")  # 10_000 or 1_000_000

NOTHING = f" {'0' * 19} "  # stands where a date or a hash was, so that words before it go with no number behind it

NUMBER = r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]{1,18}(?![0-9])(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2}(?![0-9A-Za-z.]))?"
TOKEN = re.compile(rf"(?P<number>{NUMBER})(?P<unit>[^\W\d_]+)?|[0-9]+|(?P<word>[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_])")


@dataclass(frozen=True)
class Field:
    """A number in a name.

    Attributes:
        label: word that goes with it, in lower case; "" without a word.
        kind: what the word says of the number.
        value: the number, with its unit: 500000 of "500k".
        text: the number as it is written.
        unit: letters behind it that are neither a factor nor its word: "a" of "10a".
    """

    label: str
    kind: NumberKind
    value: float
    text: str
    unit: str = ""

    @property
    def is_checkpoint(self) -> bool:
        """True after a word for what is saved, such as "ckpt"."""
        return self.label in CHECKPOINT_WORDS


def number_in(text: str) -> float | None:
    """Return the number that a whole text is, such as 20000, 20k or 1e4; None for other texts."""
    found = TOKEN.fullmatch(text.strip())
    if found is None or not found["number"] or (found["unit"] or "k") not in UNITS:
        return None
    return _value(found["number"], found["unit"] or "")


def are_grouped(texts: Sequence[str]) -> bool:
    """Return whether digits that underscores part are one number in all texts, as 1_000 and 10_000 are.

    A number such as 1_000_000 shows it. Without any, all digits must be grouped in threes, behind no word for an epoch
    or a setting. And both parts must count: numbers before the underscore differ, and those behind differ or are 000.
    """
    runs = [[*RUN.finditer(_without_codes(text))] for text in texts]
    every = [run for own in runs for run in own]
    grouped = [run for run in every if GROUPED.fullmatch(run["digits"])]
    if any(run["digits"].count("_") > 1 for run in grouped):
        return True
    if not every or len(grouped) < len(every) or {kind_of(run["word"].lower()) for run in every} - GROUPABLE:
        return False
    ends = {run["digits"].partition("_")[2] for run in every}
    starts = {tuple(run["digits"].partition("_")[0] for run in own) for own in runs}
    return ends == {"000"} or min(len(ends), len(starts)) > 1


def _without_codes(text: str) -> str:
    """Return a text without hashes and sizes."""
    return HEX.sub(
        lambda match: match[0] if PLAIN_HEX.fullmatch(match[0]) else NOTHING, SIZE.sub(NOTHING, UUID.sub(NOTHING, text))
    )


def split_dates(text: str) -> list[str]:
    """Return the dates in a text."""
    return [found[0] for found in DATE.finditer(text)]


def fields_of(text: str, *, dates: bool, thousands: bool) -> list[Field]:
    """Return the numbers in a text, in their order.

    Args:
        text: name without the suffixes of a file.
        dates: whether what looks like a date is a date.
        thousands: whether 10_000 is one number.
    """
    text = UUID.sub(NOTHING, text)
    found = []
    if dates:
        for date in split_dates(text):
            found.append(Field("date", NumberKind.WEAK, float(re.sub("[^0-9]", "", date)), date))
        text = DATE.sub(NOTHING, text)
    text = _without_codes(text)
    if thousands:
        text = GROUPED.sub(lambda match: match[0].replace("_", ""), text)
    tokens = [*TOKEN.finditer(text)]  # numbers of more than 18 digits are neither a number nor a word
    return found + [_field(tokens, place) for place, token in enumerate(tokens) if token["number"]]


def _field(tokens: list[re.Match[str]], place: int) -> Field:
    """Return the number at a place: its word is its unit, the word before, or the word behind."""
    own = tokens[place]
    unit = own["unit"] or ""
    factor, word = _unit(unit)
    before = tokens[place - 1]["word"] if place else None
    behind = tokens[place + 1]["word"] if place + 1 < len(tokens) else None
    if behind and place + 2 < len(tokens) and tokens[place + 2]["number"]:
        behind = None  # it is the word of the next number
    words = [near.lower() for near in (word, before, behind) if near]
    clear = [
        candidate for candidate in words if kind_of(candidate) in (NumberKind.STEP, NumberKind.EPOCH, NumberKind.NEVER)
    ]
    if behind and clear and clear[0] == behind.lower() and kind_of(clear[0]) is NumberKind.NEVER:
        clear = []
    label = clear[0] if clear else (before or "").lower()
    value = _value(own["number"], "") * factor
    kind = kind_of(label)
    if kind in (NumberKind.PLAIN, NumberKind.WEAK) and not value.is_integer():
        kind = NumberKind.NEVER if kind is NumberKind.PLAIN else kind
    return Field(label, kind, value, own[0], "" if word.lower() == label else word)


def _unit(unit: str) -> tuple[float, str]:
    """Return the factor of a unit, and the word that it is or holds: 1000 and "steps" of "ksteps"."""
    if not unit:
        return 1.0, ""
    if unit in UNITS:
        return UNITS[unit], ""
    if unit.lower() == "mimg":  # in thousands of images, as kimg
        return 1e3, "kimg"
    is_whole_word = unit.lower() in STEP_WORDS | EPOCH_WORDS
    counted = unit[1:].lower()
    is_counted = counted in COUNTED or kind_of(counted) in (NumberKind.STEP, NumberKind.EPOCH)
    if not is_whole_word and unit[0] in UNITS and is_counted:
        return UNITS[unit[0]], unit[1:]
    return 1.0, unit


def _value(number: str, unit: str) -> float:
    return float(number.replace(",", "")) * UNITS.get(unit, 1.0)


def kind_of(word: str) -> NumberKind:
    """Return what a word in lower case says of the number that it goes with."""
    if word in STEP_WORDS:
        return NumberKind.STEP
    if word in EPOCH_WORDS:
        return NumberKind.EPOCH
    if word in WEAK_WORDS:
        return NumberKind.WEAK
    if word in RESULTS | SETTINGS | PIXELS:
        return NumberKind.NEVER
    return next((kind for kind, endings in ENDINGS.items() if word.endswith(endings)), NumberKind.PLAIN)
