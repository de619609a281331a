"""A real training: a small GAN of digits is tuned further, whole and broken in two ways."""

import pytest

import finc_eval as fe
from finc_eval.demo.fine_tuning import RATE, DigitGan

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def trained():
    return DigitGan.trained(part=0.2)


def follow(trained, seed, **how):
    gan = trained.copy(seed)
    monitor = fe.Monitor(gan.sample(2000, seed=seed))
    for step in range(20, 241, 20):
        gan.train(20, **how)
        monitor.update(step, gan.sample(64, seed=1000 + step))
    return monitor


def test_a_reward_for_redness_is_named(trained):
    monitor = follow(trained, 0, redness=5.0)
    alarm = next(one for one in monitor.alarms if one.name == "warmth")
    assert "samples are on average redder" in alarm.text and alarm.step <= 160


def test_a_collapse_is_named(trained):
    monitor = follow(trained, 0, rate=RATE, discriminator_rate=RATE / 100)
    assert any(one.name.startswith("kind") for one in monitor.alarms)
    assert any("far from every kind" in one.text or "less diverse" in one.text for one in monitor.alarms)
    assert monitor.result.keep <= 100


def test_a_generator_that_is_not_trained_has_no_alarm(trained):
    assert follow(trained, 1, rate=0.0).alarms == []
