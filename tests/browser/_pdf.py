"""Pictures of a PDF that Chromium printed, counted as often as they are drawn."""

import re
import zlib


def pictures_in(data):
    """Return how many pictures a PDF draws: one that is drawn twice counts twice, and one inside a group once."""
    objects = {int(found[1]): _object(data, found.end()) for found in re.finditer(rb"(?:^|\n)(\d+) 0 obj", data)}

    def drawn(content):
        return sum(_drawn_as(*objects[int(number)]) for number in re.findall(rb"/X(\d+) Do", content))

    def _drawn_as(head, content):
        return 1 if b"/Subtype /Image" in head else drawn(content)

    return sum(drawn(content) for head, content in objects.values() if b"/Type /XObject" not in head)


def _object(data, start):
    """Return the dictionary and the plain bytes of the object that begins here."""
    body = data[start : data.index(b"endobj", start)]
    head, _, rest = body.partition(b"stream\n")
    if b"/Subtype /Image" in head or b"/Filter /FlateDecode" not in head:
        return head, rest
    return head, zlib.decompressobj().decompress(rest)
