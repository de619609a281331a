"""The audit of pictures: mirrored copies that no embedding shows are found, fresh pictures are not accused."""

import json
import re

import numpy as np
import pytest
from _cards import small_pixel_card
from _stored import made_once
from PIL import Image

import finc_eval as fe
from finc_eval.embeddings.embedding_set import EmbeddingSet
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.memorization import nearness
from finc_eval.memorization import views as views_module
from finc_eval.memorization.hashes import PLAIN_VIEWS
from finc_eval.memorization.nearness import NO_PICTURES
from finc_eval.memorization.page import page as audit_page
from finc_eval.memorization.page import show
from finc_eval.memorization.result import Audit

pytestmark = pytest.mark.usefixtures("quick_audits")

SIZE, COPIES = 200, 25


@pytest.fixture(scope="module", autouse=True)
def quick():
    """No shifted views, for speed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearness, "query_views", lambda *_: PLAIN_VIEWS)
        yield


@pytest.fixture(scope="module")
def images(digits):
    """Three sets of digits, and the third with mirrored training images in the place of its first ones."""
    rows = np.rint(digits[0][: 3 * SIZE].reshape(3, SIZE, 28, 28) * 255).astype(np.uint8)
    sets = dict(zip(("train", "holdout", "fresh"), rows, strict=True))
    copied = sets["fresh"].copy()
    copied[:COPIES] = sets["train"][:COPIES, :, ::-1]
    return sets | {"copied": copied}


@pytest.fixture(scope="module")
def embed(tmp_path_factory):
    """A function that embeds images by 14 x 14 pixels: the usual 28 x 28 take minutes."""
    folder = tmp_path_factory.mktemp("altered")
    small_pixel_card(folder / "small.toml", 14)

    def embed_images(name, rows):
        np.savez(folder / f"{name}.npz", images=rows)
        return fe.extract(folder / f"{name}.npz", folder / "small.toml", folder / f"{name}.h5")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views_module, "card_again", lambda name: name)
        patch.setattr(views_module, "load_card", lambda name: fe.load_card(folder / f"{name}.toml"))
        yield embed_images


@pytest.fixture(scope="module")
def caches(images, embed):
    return {name: embed(name, rows) for name, rows in images.items()}


def audit_of(name, request, tmp_path_factory):
    """Audit a set against the training images, once for all workers."""

    def make(_):
        caches = request.getfixturevalue("caches")
        return fe.audit(caches[name], caches["train"], caches["holdout"])

    return made_once(tmp_path_factory, f"audit of {name} digits", make)


@pytest.fixture(scope="module")
def copied(request, tmp_path_factory):
    return audit_of("copied", request, tmp_path_factory)


@pytest.fixture(scope="module")
def fresh(request, tmp_path_factory):
    return audit_of("fresh", request, tmp_path_factory)


def test_mirrored_copies_are_found_by_their_hashes_and_by_a_view_but_not_by_the_embedding(copied):
    assert {"hash", "views"} <= set(copied.copying.found_by)
    assert "calibrated" not in copied.copying.found_by
    assert copied.copying.copies.same_pixels == copied.copying.copies.same_embedding == 0
    assert COPIES / 2 < copied.copying.copies.at_least <= COPIES
    assert {pair.gen for pair in copied.copying.pairs} <= {str(row) for row in range(COPIES)}
    assert all(pair.gen == pair.train and not pair.same_pixels for pair in copied.copying.pairs)


def test_fresh_pictures_are_not_accused(fresh):
    assert fresh.copying.found_by == ()
    assert fresh.copying.copies.at_least == 0
    assert fresh.verdict == f"No copies of training images were found among {SIZE} samples."
    names = [measure.name for measure in fresh.copying.measures]
    assert names == ["authpct", "c_t", "dcr", "nndr", "calibrated", "hash", "views", "mifid", "fld_gap"]
    assert fresh.copying.power_alpha == pytest.approx(0.5 * 0.05 / 9)


def test_the_power_against_altered_copies_is_printed_and_a_mirror_does_not_lower_it(fresh):
    by_hash = {(one.kind, one.share): one for one in fresh.copying.power if one.test == "hash"}
    assert {kind for kind, _ in by_hash} == set(views_module.ALTERATIONS)
    assert by_hash["mirrored", 0.1].copies == 20
    assert by_hash["mirrored", 0.1].probability > 0.9 > by_hash["shift", 0.1].probability
    assert "mirrored, by hash" in audit_page(fresh, {})


def test_the_page_the_terminal_and_the_json_begin_with_the_verdict(copied, capsys):
    sentence = copied.verdict
    assert re.match(r"At least \d+ of 200 samples are training images, altered: \d+ of 256 bits of their", sentence)
    assert copied.headline.startswith(sentence)
    page = audit_page(copied, {})
    below_the_title = page.split('<div class="title">')[1].split("</div>")[1]
    assert re.sub(r"<[^>]+>", "", below_the_title).strip().startswith(sentence)
    assert page.index('id="suspects"') < page.index('id="warnings"') < page.index('id="copying"')
    assert re.search(r"<small>\d+ bits? \(0.0 %\)</small>", page)
    show(copied)
    assert capsys.readouterr().out.startswith(sentence)
    assert repr(copied).startswith(f"Audit({sentence}")
    assert json.loads(copied.to_json())["verdict"] == sentence
    assert Audit.from_dict(copied.to_dict()).verdict == sentence


@pytest.mark.long
def test_equal_pixels_are_counted_and_named_first(images, caches, embed):
    rows = images["copied"].copy()
    rows[:30] = images["train"][:30]
    found = fe.audit(embed("exact", rows), caches["train"], caches["holdout"])
    assert found.verdict == "30 of 200 samples are training images, pixel by pixel."
    assert all(pair.same_pixels and pair.distance == 0 for pair in found.copying.pairs)
    assert "equal pixels (0.0 %)" in audit_page(found, {})


@pytest.mark.long
def test_pictures_in_memory_are_hashed_and_their_views_are_said_to_be_left_out(images):
    sets = {
        name: EmbeddingSet(
            images[name][:120, ::2, ::2].reshape(120, -1).astype(np.float32), images=images[name][:120], name=name
        )
        for name in ("copied", "train", "holdout")
    }
    found = fe.audit(sets["copied"], sets["train"], sets["holdout"])
    assert "hash" in found.copying.found_by
    assert "views of suspects are left out: the extractor of embeddings in memory is not known" in found.warnings


def test_without_pictures_the_audit_says_what_it_does_not_see(images):
    gen, train, holdout = (
        images[name][:110].reshape(110, -1)[:, ::7].astype(np.float32) for name in ("copied", "train", "holdout")
    )
    found = fe.audit(gen, train, holdout)
    assert NO_PICTURES in found.warnings
    assert found.copying.copies.same_pixels is None
    assert len(found.copying.measures) == 7


def test_pictures_that_changed_since_they_were_embedded_are_not_taken_for_them(tmp_path, images):
    (tmp_path / "set").mkdir()
    for row in range(3):
        Image.fromarray(images["train"][row]).save(tmp_path / "set" / f"{row}.png")
    samples = as_embeddings(fe.extract(tmp_path / "set", "pixels", tmp_path / "set.h5"))
    assert len(samples.images_at(np.arange(3))) == 3
    assert len(Subset(samples, np.array([2, 0])).content()) == 2
    Image.fromarray(images["train"][9]).save(tmp_path / "set" / "1.png")
    assert samples.images_at(np.array([0, 2])) is not None
    assert samples.images_at(np.arange(3)) is None
