"""Cards that tests write: the shipped card of pixels, changed."""

from importlib import resources


def pixel_card(path, *changes):
    """Write the card of pixels without its golden values, named as the file, and return the path.

    Args:
        path: file to write.
        changes: pairs of a piece of the card and what takes its place.
    """
    text = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text(encoding="utf-8")
    text = text.split("[golden]")[0].replace('name = "pixels"', f'name = "{path.stem}"')
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return path


def small_pixel_card(path, side):
    """Write a card of side x side pixels: what costs d² or d³ is cheap."""
    return pixel_card(path, ("[28, 28]", f"[{side}, {side}]"), ("dimension = 2352", f"dimension = {3 * side**2}"))
