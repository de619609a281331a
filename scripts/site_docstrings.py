"""Griffe extension of the site (mkdocs.yml): docstrings and fields as this repository writes them."""

import ast
import re

from griffe import Docstring, Extension


class HouseStyle(Extension):
    """Read `Annotated[type, about("…")]` as type and description of a field, and `Example:` as an example to run."""

    def on_attribute_instance(self, *, node, attr, **_):
        """Take the description of a field from its annotation."""
        match node:
            case ast.AnnAssign(annotation=ast.Subscript(value=ast.Name("Annotated"), slice=ast.Tuple([_, *notes]))):
                attr.annotation = attr.annotation.slice.elements[0]
                for note in notes:
                    if isinstance(note, ast.Call) and ast.unparse(note.func) == "about" and not attr.docstring:
                        text = words(note.args[0])
                        attr.docstring = Docstring(f"{text[:1].upper()}{text[1:]}.", parent=attr)

    def on_instance(self, *, obj, **_):
        """Give sections of examples the name that griffe knows."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)


def words(text):
    """Return the words of a string in the source, without what an f-string would insert at its end."""
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    return "".join(part.value for part in parts if isinstance(part, ast.Constant)).rstrip(": ")
