"""Steps of checkpoints, from names as trainers write them."""

import pytest

import finc_eval as fe
from finc_eval.monitoring.steps import order_steps

READ = {  # names in the order of their steps, and these steps
    "ckpt-9 ckpt-10": (9, 10),
    "iter_1000_fid_23 iter_2000_fid_18 iter_3000_fid_15": (1000, 2000, 3000),
    "iter_1000_fid_15 iter_2000_fid_18 iter_3000_fid_23": (1000, 2000, 3000),
    "fid23_iter1000 fid18_iter2000": (1000, 2000),
    "fid_23.4_step_500 fid_18.1_step_1000": (500, 1000),
    "step-500k step-1M step-2M": (5e5, 1e6, 2e6),
    "step_500K.h5 step_1.5M.h5": (5e5, 1.5e6),
    "500k_steps 1000k_steps": (5e5, 1e6),
    "100ksteps 1Msteps": (1e5, 1e6),
    "1000steps 20000steps": (1000, 20000),
    "100_iterations 2000_iterations": (100, 2000),
    "5ep 10ep 20ep": (5, 10, 20),
    "epoch=0-step=500 epoch=1-step=1000-v1": (500, 1000),
    "epoch=1-step=1000-v1.ckpt epoch=1-step=2000-v1.ckpt": (1000, 2000),
    "epoch=0-step=999.ckpt epoch=1-step=999.ckpt": (0, 1),
    "epoch=9-val_loss=0.32.ckpt epoch=10-val_loss=0.28.ckpt": (9, 10),
    "model-epoch=02-val_loss=0.28 model-epoch=11-val_loss=0.31": (2, 11),
    "epoch=000012.ckpt epoch=000120.ckpt": (12, 120),
    "gpt--val_loss=2.31-step=1000-consumed_samples=8000.0 gpt--val_loss=2.1-step=2000-consumed_samples=16000.0": (
        1000,
        2000,
    ),
    "sd15_500_seed42 sd15_1000_seed42": (500, 1000),
    "500_seed42 1000_seed43": (500, 1000),
    "step500_seed9 step1000_seed1": (500, 1000),
    "network-snapshot-000400.pkl network-snapshot-025000.pkl": (400, 25000),
    "network-snapshot-0001000-0.100.pkl network-snapshot-0002000-0.100.pkl": (1000, 2000),
    "edm2-img512-s-0134217-0.100 edm2-img512-s-2147483-0.130": (134217, 2147483),
    "00000-stylegan3-t-kimg000400 00000-stylegan3-t-kimg001000": (400, 1000),
    "fakes5000kimg fakes10000kimg": (5000, 10000),
    "1e3 1e4 1e5": (1e3, 1e4, 1e5),
    "step_5e3 step_1e4": (5e3, 1e4),
    "step_1e4 step_20000": (1e4, 2e4),
    "lr1e-4_step_100 lr1e-4_step_200": (100, 200),
    "lr1e-4_100 lr5e-5_200": (100, 200),
    "ckpt-500_512x512 ckpt-1000_512x512": (500, 1000),
    "out_500_256px out_1000_256px": (500, 1000),
    "64x64_9 128x128_10": (9, 10),
    "step-500/samples step-1000/samples": (500, 1000),
    "checkpoints/005000/pretrained_model checkpoints/010000/pretrained_model": (5000, 10000),
    "iter_0001000/mp_rank_00 iter_0002000/mp_rank_00": (1000, 2000),
    "runs/7/step-500/images_256 runs/7/step-1000/images_256": (500, 1000),
    "a/step-500/ a/step-1000/": (500, 1000),
    "./ckpt-90/. ./ckpt-100/.": (90, 100),
    "step-500/seed1 step-1000/seed2": (500, 1000),
    "s3://bucket/step-500 s3://bucket/step-1000": (500, 1000),
    "checkpoint-500 checkpoint-1500": (500, 1500),
    "checkpoint-12.pth.tar checkpoint-100.pth.tar": (12, 100),
    "mylora-000010.safetensors mylora-000020.safetensors": (10, 20),
    "mylora-step00000500.safetensors mylora-step00001000.safetensors": (500, 1000),
    "last-mymodel-ep9-gs01500 last-mymodel-ep10-gs03000": (1500, 3000),
    "samples_gs-001000_e-000000_b-000500 samples_gs-002000_e-000000_b-001500": (1000, 2000),
    "samples_gs-001000_e-000000_b-000500 samples_gs-002000_e-000001_b-000100": (1000, 2000),
    "global_step1000 global_step200000": (1000, 200000),
    "global_step_100/actor global_step_200/actor": (100, 200),
    "GlobalStep100 GlobalStep2000": (100, 2000),
    "globalstep9 globalstep10": (9, 10),
    "ema_0.9999_050000.pt ema_0.9999_100000.pt": (50000, 100000),
    "model050000.pt model100000.pt": (50000, 100000),
    "checkpoint_1_500.pt checkpoint_1_1000.pt checkpoint_2_1500.pt": (500, 1000, 1500),
    "2024-11-05_12-30-00-save-500-10-0 2024-11-05_13-30-00-save-1500-30-0": (500, 1500),
    "2024-11-05_12-30-00_step100 2024-11-04_12-30-00_step200": (100, 200),
    "20241105_100 20241101_200": (100, 200),
    "20241105-123000-100 20241104-123000-200": (100, 200),
    "2024-11-05 2024-11-06": (20241105, 20241106),
    "run_1731234567_100 run_1731239999_200": (100, 200),
    "100-a1b2c3d 200-9f8e7d6": (100, 200),
    "step_100_550e8400-e29b-41d4-a716-446655440000 step_200_123e4567-e89b-12d3-a456-426614174000": (100, 200),
    "a7f3b2_500 b1c2d3_1000": (500, 1000),
    "500 1000 1500": (500, 1000, 1500),
    "000 050 100": (0, 50, 100),
    "0.h5 50.h5 100.h5": (0, 50, 100),
    "step_10_000 step_500_000 step_1_000_000": (1e4, 5e5, 1e6),
    "step-10,000 step-1,000,000": (1e4, 1e6),
    "1_000 2_000 10_000": (1000, 2000, 10000),
    "ckpt-1_000.h5 ckpt-10_000.h5": (1000, 10000),
    "500 1_000 1_500": (500, 1000, 1500),
    "iter_1_500_fid_23 iter_2_000_fid_18": (1500, 2000),
    "step_9_500/samples step_10_000/samples": (9500, 10000),
    "model_5_512 model_10_512": (5, 10),  # 512 is of all, and not a thousand
    "model_5_50 model_5_100": (50, 100),
    "sd_2_500 sd_2_800": (500, 800),  # so is the 2
    "run_1_500 run_2_800": (500, 800),
    "fid_23.4_500 fid_18.1_900": (500, 900),
    "a7f3b2_500 b1c2d3_900": (500, 900),
    "it=900,loss=3 it=1000,loss=2": (900, 1000),
    "update_9_reward_7 update_10_reward_5": (9, 10),
    "ckpt_1000_fvd_420 ckpt_2000_fvd_380": (1000, 2000),
    "model_900_mystery_23 model_1000_mystery_18": (900, 1000),
    "sd-v1 sd-v2": (1, 2),
    "gen_epoch_5_512 gen_epoch_10_512": (5, 10),
    "step_0.5M step_1M": (5e5, 1e6),
    "tick_9_lpips_0.3 tick_12_lpips_0.2": (9, 12),
    "ckpt-1000000 ckpt-1000001": (1000000, 1000001),
    "500Mtokens 1Btokens": (5e8, 1e9),
    "ema-500-0.9999 ema-1000-0.9999": (500, 1000),
    "gen-1000_steps-50 gen-2000_steps-50": (1000, 2000),
    "iter_1000_mystery_23 iter_2000_mystery_18": (1000, 2000),
    "best-500-0.31 best-1000-0.28": (500, 1000),
    "e10_s1000 e20_s2000": (10, 20),
    "100_net_G 200_net_G": (100, 200),
    "rank0-step5 rank1-step9": (5, 9),
    "step-500-of-10000 step-1000-of-10000": (500, 1000),
    "wan2.1-1.3b-500 wan2.1-1.3b-1000": (500, 1000),
    "ckpt-５-500 ckpt-５-1000": (500, 1000),
}

ALONE = {  # a name alone, and its step
    "ckpt-500": 500,
    "iter_1000_fid_23": 1000,
    "epoch=1-step=1000-v1.ckpt": 1000,
    "sd_step500_seed42": 500,
    "network-snapshot-0001000-0.100.pkl": 1000,
    "model_500_512x512": 500,
    "step-500/samples": 500,
    "step-500k": 5e5,
    "epoch=3": 3,
    "step_10_000": 10000,
}

REFUSED = {  # names, and words of the sentence
    "final": ("final has no number", "--step final=500"),
    "last.npy": ("last.npy has no number", "--step last.npy="),
    "step-500 step-1000 final": ("final has no number", "--step final="),
    "step-500 best last": ("best has no number", "and neither has last"),
    "step-500/samples final/samples": ("final/samples has no number", "--step final/samples="),
    "step-500 final_512": ("final_512 has no number",),
    "sd_seed42 sd_seed43": ("sd_seed42 has no number", "42 goes with “seed”"),
    "val_loss=0.32.ckpt val_loss=0.28.ckpt": ("has no number", "0.32 goes with “loss”"),
    "a_512x512 b_256x256": ("has no number",),
    "weights-0.100.pkl weights-0.050.pkl": ("has no number",),
    "run1 run2": ("has no number",),
    "gpu0/samples gpu1/samples": ("has no number",),
    "a1_b10 a2_b20": ("1, 2 (after “a”) or 10, 20 (after “b”)", "--step NAME=N"),
    "left_1_right_9 left_2_right_12 left_3_right_20": ("after “left”) or 9, 12, 20 (after “right”)",),
    "step-100_iter-1 step-200_iter-2": ("100, 200 (after “step”) or 1, 2 (after “iter”)",),
    "epoch=0-step=900 epoch=1-step=300 epoch=2-step=100": ("after “step”", "after “epoch”"),
    "epoch=0-step=5 epoch=0-step=9 epoch=1-step=5": ("are both of step", "--step NAME=N"),
    "ckpt-100.npy b-100.npy": ("are both of step 100",),
    "network-snapshot-1000-0.050 network-snapshot-1000-0.100": ("are both of step 1000",),
    "epoch=1-step=1000 epoch=1-step=1000-v1": ("are both of step 1000",),
    "step-500 epoch-3": ("do not say their steps in one way", "--step NAME=N"),
    "epoch=1-step=500 last-v1": ("do not say their steps in one way",),
    "gen-1000_steps-50 gen-2000_steps-25": ("after “steps”", "after “gen”"),
    "30m 1h": ("do not say their steps in one way",),
    "ckpt-10min ckpt-1h": ("do not say their steps in one way",),
    "sdxl-1.0 sdxl-1.5": ("1.5 goes with “sdxl”",),
    "G_1000_D_2000 G_2000_D_4000": ("after “g”",),
    "10-20": ("the steps of 10-20 could be 10 or 20",),
    "ckpt-100 ckpt-100": ("are both of step 100",),
    "one two": ("one has no number", "neither has two"),
    "a b c d": ("a has no number", "nor have 3 others"),
}


@pytest.mark.parametrize("names", READ)
def test_steps_are_read_by_what_differs_and_rises(names):
    expected = dict(zip(READ[names], names.split(), strict=True))
    assert order_steps(names.split()) == expected
    for order in (sorted(names.split()), names.split()[::-1]):
        assert [*order_steps(order).items()] == [*expected.items()]


def test_of_numbers_without_a_word_the_one_that_rises_in_the_order_of_the_names_is_the_step():
    names = ["0001000_23", "0002000_18", "0003000_20"]
    assert [*order_steps(names)] == [1000, 2000, 3000] == [*order_steps(["0003000_20", "0001000_23", "0002000_18"])]
    with pytest.raises(fe.UsageError, match="could be 0002000, 0001000 or 18, 23"):  # as given, the other rises
        order_steps(["0002000_18", "0001000_23"])


@pytest.mark.parametrize("name", ALONE)
def test_the_step_of_a_single_name_is_read_by_its_words(name):
    assert order_steps([name]) == {ALONE[name]: name}


@pytest.mark.parametrize("names", REFUSED)
def test_names_that_do_not_say_their_steps_are_refused_with_the_way_out(names):
    with pytest.raises(fe.UsageError) as refused:
        order_steps(names.split())
    assert all(words in str(refused.value) for words in REFUSED[names]), refused.value
    assert "--step" in str(refused.value)


@pytest.mark.parametrize(
    ("names", "given", "steps"),
    [
        ("step-500 step-1000 final", ["final=2k"], (500, 1000, 2000)),
        ("out/step-500 out/final.npy", ["final.npy=20000"], (500, 20000)),
        ("out/step-500 out/final.npy", ["final=1e4"], (500, 1e4)),
        ("out/step-500/samples out/final/samples", ["final=1M"], (500, 1e6)),
        ("out/step-500/samples out/final/samples", ["final/samples=700"], (500, 700)),
        ("out/step-500/ out/last/", ["out/last/=700"], (500, 700)),
        ("a1_b10 a2_b20", ["a1_b10=10", "a2_b20=20"], (10, 20)),
        ("epoch=1-step=5 last", ["last=9", "epoch=1-step=5=7"], (7, 9)),
        ("best", ["best=0"], (0,)),
        ("ckpt-1 ckpt-2", ["ckpt-2=0.5"], (0.5, 1)),
        ("step-1 last", ["last=9", "last=9"], (1, 9)),
        ("gen old/gen", ["gen=1", "old/gen=2"], (1, 2)),  # the whole of a path goes before the end of another
    ],
)
def test_a_step_can_be_given(names, given, steps):
    found = order_steps(names.split(), given)
    assert tuple(found) == steps and {*found.values()} == {*names.split()}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("finale=5", 'fits no name (did you mean "final"?): name one of step-1, step-2 and final'),
        ("zzz=5", "fits no name: name one of step-1"),
        ("a=5", "fits 3 names"),
        ("final", "--step is NAME=N, got final"),
        ("final=", "--step is NAME=N"),
        ("=5", "--step is NAME=N"),
        ("final=soon", "--step is NAME=N"),
        ("final=-5", "--step is NAME=N"),
        ("final=2", "are both of step 2"),
    ],
)
def test_a_wrong_step_is_one_sentence(given, words):
    with pytest.raises(fe.UsageError) as refused:
        order_steps(["a/step-1", "a/step-2", "a/final"], [given])
    assert words in str(refused.value)


def test_a_step_that_is_given_twice_is_refused():
    with pytest.raises(fe.UsageError, match="gives final the steps 5 and 6"):
        order_steps(["step-1", "final"], ["final=5", "final=6"])
