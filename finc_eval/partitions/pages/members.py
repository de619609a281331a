"""The folder beside a page with all members of its kinds: a page for each kind, look and direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from finc_eval import report
from finc_eval.core.storage import write_text, write_together
from finc_eval.gallery.members import Members
from finc_eval.gallery.pictured import Gallery, read_gallery
from finc_eval.partitions.atlas import Mapped
from finc_eval.report.cards import anchor
from finc_eval.report.pages import render
from finc_eval.samples.source import Samples

MOST_MEMBERS = 1000  # samples of all sets on a page of members: 3 MB


def gallery_files(result: Mapped, page: Path) -> dict[str, Path]:
    """Return the files of the folder beside a page, by the id of the kind, look or direction.

    Raises:
        DataError: the result has no map.
    """
    return {members.id: members_folder(page) / member_page(members.id) for members in result.member_lists()}


def members_folder(page: Path) -> Path:
    """Return the folder of all members beside a page."""
    return page.with_name(f"{page.stem}-members")


def member_page(name: str) -> str:
    """Return the name of the page of a kind, look or direction; links need no escapes in it."""
    return f"{anchor(name).replace(':', '_')}.html"


def write_gallery(result: Mapped, page: Path, samples: Mapping[str, Samples]) -> None:
    """Write the page of a result, and beside it the folder of all members, with links from one to the other.

    Args:
        result: a result with a map.
        page: path of its page.
        samples: where the samples of a set are now, by label, if not where they were embedded from.

    Raises:
        DataError: the result has no map, or samples that were passed cannot be opened.
    """
    sets, files = result.pictured_sets(), gallery_files(result, page)
    most = MOST_MEMBERS // len(sets)
    lists = [
        members._replace(ids={label: ids[:most] for label, ids in members.ids.items()})
        for members in result.member_lists()
    ]
    wanted = {label: {name for members in lists for name in members.ids.get(label, ())} for label in sets}
    gallery = read_gallery(sets, wanted, samples, kept=result.kept, names=result.names_in_sentences)
    with write_together():
        write_text(
            page,
            report.page(replace(result, folder_of_members=files[lists[0].id].parent.name if lists else ""), samples),
        )
        for members in lists:
            write_text(files[members.id], members_page(result, members, gallery, page.name))


def members_page(result: Mapped, members: Members, gallery: Gallery, back: str) -> str:
    """Return the page of all members of a kind, look or direction, which leads back to the page of the result."""
    said = report.outline(result)
    ids = {label: names for label, names in members.ids.items() if label in result.pictured_sets()}
    drawn = replace(
        said,
        kind="all members",
        title=members.title,
        says={"members": members.described},
        sets={label: len(names) for label, names in ids.items()},
        tables=(),
        warnings=(),
        how="Typical samples come first; the last ones are at the edge of the kind.",
    )
    there = {
        label: {name: picture for name, picture in gallery.pictures[label].items() if name in {*ids[label]}}
        for label in ids
    }
    return render(
        result,
        drawn,
        Gallery(there, gallery.notes),
        "partitions/pages/members.html",
        members=ids,
        back=f"../{back}#{anchor(members.id)}",
    )
