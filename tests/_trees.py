"""The syntax trees of files of this repository, which several guards look at: each is parsed and walked once."""

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a tree, in the order of `ast.walk`."""
    return list(ast.walk(tree_of(path)))
