"""Fields that this working tree's results may still lack. Delete this module once they are all there."""

import inspect
from dataclasses import fields

import finc_eval as fe


def embedding_set(rows, ids=None, metadata=None):
    return fe.EmbeddingSet(rows, ids=ids, metadata=metadata) if hasattr(fe, "EmbeddingSet") else rows


def grouped_by(column):
    known = {*inspect.signature(fe.compare).parameters, *(field.name for field in fields(fe.Settings))}
    return {"groups": column} if "groups" in known else {}


def of(result, name):
    """Return an attribute of a result, or None."""
    return getattr(result, name, None)


def found_by(mode):
    return of(mode, "found_by") or "directions"


def is_member(comparison, mode, rows):
    """Return which samples are members of a mode, (n,), or None where its threshold is unknown."""
    if of(mode, "threshold") is None:
        return None
    return comparison.score(rows, [mode])[:, 0] > mode.threshold
