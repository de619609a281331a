"""The names, ids and numbers of a sentence, in order."""

import re

SAID = re.compile(r"(?:like )?“[^”]*”|\bk\d+\b|\b(?:over|under)-\w+|(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?")


def values(sentence):
    """Return the names, ids and numbers of a sentence: "“3” k1 13.1 4.0" of 'The kind “3”, k1, is 13.1 % (4.0 %)'."""
    return " ".join(SAID.findall(sentence))


def values_by_key(sentences):
    """Return the names, ids and numbers of each sentence by its key."""
    return {key: values(one) for key, one in sentences.items()}
