"""Simple methods that answer the benchmark of differences, beside finc-eval; all get the same embeddings.

A method takes an `Opened` case and returns an answer (`judge`). Those that score samples list the samples beyond 95 %
of the other set; the share is what is more than these 5 %.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from scipy.stats import fisher_exact
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import finc_eval as fe
from _differences.judge import LEVEL
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.naming.classes import class_properties
from finc_eval.naming.properties import panel_of
from finc_eval.numerics.inference import mover, wilson

PERMUTATIONS = 199
AXES = 50  # principal axes of both sets together
KINDS = 20  # clusters of k-means
OTHER = 0.05  # share of the other set beyond which samples are listed
SIDES = ("gen", "ref")


@dataclass
class Opened:
    """A case as methods see it.

    Attributes:
        caches: embeddings of both sets, with their pictures.
        rows: the embeddings, (n, d).
        ids: names of the samples, such as "gen/0004.png".
        pictures: the samples as images, or as arrays of frames.
        prompts: prompt of each sample; empty without prompts.
    """

    caches: Mapping
    rows: Mapping
    ids: Mapping
    pictures: Mapping
    prompts: Mapping

    @property
    def both(self):
        return np.concatenate([self.rows[side] for side in SIDES])

    @property
    def is_gen(self):
        return np.arange(len(self.both)) < len(self.rows["gen"])

    @property
    def all_ids(self):
        return np.array([*self.ids["gen"], *self.ids["ref"]])


def beyond(opened, scores, side, p_value):
    """Return the difference that the samples of a side beyond 95 % of the other set show, if they are more."""
    own = opened.is_gen if side == "gen" else ~opened.is_gen
    limit = np.quantile(scores[~own], 1 - OTHER)
    places = np.flatnonzero(own & (scores > limit))
    share = len(places) / own.sum() - OTHER
    ids = opened.all_ids[places[np.argsort(-scores[places])]].tolist()
    return [{"side": side, "ids": ids, "share": share, "p_value": p_value}] if share > 0 else []


def permuted(statistic, is_gen, rng):
    """Return the p-value of a statistic of both sets under permutations of the samples."""
    seen = statistic(is_gen)
    drawn = [statistic(rng.permutation(is_gen)) for _ in range(PERMUTATIONS)]
    return (1 + sum(value >= seen for value in drawn)) / (1 + PERMUTATIONS)


def witness(opened, rng):
    """Witness function of the MMD: the difference of kernel means, at the median distance (arXiv 0805.2368)."""
    rows = torch.from_numpy(opened.both)
    distances = torch.cdist(rows, rows).numpy()
    kernel = np.exp(-(distances**2) / (2 * np.median(distances) ** 2))
    np.fill_diagonal(kernel, 0)

    def mmd(is_gen):
        weight = np.where(is_gen, 1 / is_gen.sum(), -1 / (~is_gen).sum())
        return weight @ kernel @ weight

    p_value = permuted(mmd, opened.is_gen, rng)
    means = [kernel[:, mask].sum(1) / (mask.sum() - mask) for mask in (opened.is_gen, ~opened.is_gen)]
    scores = means[0] - means[1]
    return [*beyond(opened, scores, "gen", p_value), *beyond(opened, -scores, "ref", p_value)]


def principal(opened, rng):
    """Mean difference, and the largest eigenvector of the difference of covariances."""
    x = PCA(min(AXES, *opened.both.shape), whiten=False, random_state=0).fit_transform(opened.both)
    is_gen = opened.is_gen

    def axis_of_means(mask):
        return x[mask].mean(0) - x[~mask].mean(0)

    def spectrum(mask):
        values, vectors = np.linalg.eigh(np.cov(x[mask].T) - np.cov(x[~mask].T))
        return values, vectors

    found = []
    p_value = min(1.0, 2 * permuted(lambda mask: (axis_of_means(mask) ** 2).sum(), is_gen, rng))
    scores = x @ axis_of_means(is_gen)
    found += [*beyond(opened, scores, "gen", p_value), *beyond(opened, -scores, "ref", p_value)]
    p_value = min(1.0, 2 * permuted(lambda mask: np.abs(spectrum(mask)[0]).max(), is_gen, rng))
    values, vectors = spectrum(is_gen)
    place = int(np.abs(values).argmax())
    scores = (x - x.mean(0)) @ vectors[:, place]
    side = "gen" if values[place] > 0 else "ref"
    tails = [beyond(opened, sign * scores, side, p_value) for sign in (1, -1)]
    return found + max(tails, key=lambda tail: tail[0]["share"] if tail else 0.0)


def clusters(opened, rng):
    """Shares of 20 clusters of k-means, each by Fisher's exact test, with Bonferroni's correction."""
    fitted = KMeans(KINDS, n_init=4, random_state=0).fit(opened.both)
    distance, is_gen, found = fitted.transform(opened.both).min(1), opened.is_gen, []
    for kind in range(KINDS):
        places = np.flatnonzero(fitted.labels_ == kind)
        counts = [int(is_gen[places].sum()), int((~is_gen[places]).sum())]
        table = of_counts(counts, (int(is_gen.sum()), int((~is_gen).sum())), KINDS)
        found.append(table | {"ids": opened.all_ids[places[np.argsort(distance[places])]].tolist()})
    return [each for each in found if each["p_value"] <= LEVEL]


def of_counts(counts, sizes, tests):
    """Return side, share, interval and p-value of the difference of two shares."""
    order = [0, 1] if counts[0] / sizes[0] >= counts[1] / sizes[1] else [1, 0]
    ends = []
    for place in order:
        low, high = wilson(counts[place] / sizes[place], sizes[place])
        ends.append((low, counts[place] / sizes[place], high))
    low, high = mover(*ends)
    p_value = fisher_exact([[counts[0], sizes[0] - counts[0]], [counts[1], sizes[1] - counts[1]]])[1]
    return {
        "side": SIDES[order[0]],
        "share": ends[0][1] - ends[1][1],
        "interval": [float(low), float(high)],
        "p_value": min(1.0, float(p_value) * tests),
    }


def classifier(opened, rng):
    """Cross-fitted logistic regression; the p-value is of the held-out scores (Lopez-Paz and Oquab 2017)."""
    model = make_pipeline(StandardScaler(), PCA(min(AXES, *opened.both.shape)), LogisticRegression(C=0.1, max_iter=500))
    scores = cross_val_predict(model, opened.both, opened.is_gen, cv=5, method="decision_function")
    p_value = permuted(lambda mask: scores[mask].mean() - scores[~mask].mean(), opened.is_gen, rng)
    return [*beyond(opened, scores, "gen", p_value), *beyond(opened, -scores, "ref", p_value)]


TRAITS = {
    "brightness": ("dark", "bright"),
    "contrast": ("flat, low contrast", "harsh, high contrast"),
    "color": ("gray, colorless", "colorful, vivid"),
    "sharpness": ("blurred, soft", "sharp or noisy"),
    "warmth": ("blue", "sepia, warm tint"),
    "change": ("still, frozen", "flickering, moving"),
}
"""Words for little and for much of what `measured` measures."""


def measured(sample):
    """Measure the traits of a picture, or of the frames of a clip."""
    frames = sample[::4] if isinstance(sample, np.ndarray) else [np.asarray(sample)]
    values = []
    for frame in np.asarray(frames, float):
        level = frame.mean(2)
        edges = np.abs(level[1:, 1:] - level[:-1, 1:]) + np.abs(level[1:, 1:] - level[1:, :-1])
        warmth = frame[..., 0].mean() - frame[..., 2].mean()
        values.append((level.mean(), level.std(), np.ptp(frame, axis=2).mean(), np.log1p(edges.mean()), warmth))
    change = np.abs(np.diff(sample.astype(float), axis=0)).mean() if isinstance(sample, np.ndarray) else 0.0
    return (*np.mean(values, 0), change)


def words(opened, rng):
    """Words without CLIP: six traits beyond 97.5 % of the reference, and classes of the network's own last layer.

    Each is tested by Fisher's exact test, with Bonferroni's correction.
    """
    has, names, order = [], [], []
    values = {side: np.array([measured(each) for each in opened.pictures[side]]) for side in SIDES}
    every = np.concatenate([values[side] for side in SIDES])
    low, high = np.quantile(values["ref"], [0.025, 0.975], axis=0)
    for place, ends in enumerate(TRAITS.values()):
        for name, flags, sign in zip(ends, (every < low, every > high), (1, -1), strict=True):
            has.append(flags[:, place])
            names.append(name)
            order.append(sign * every[:, place])
    for properties in class_properties(
        panel_of([], {side: as_embeddings(opened.caches[side], side) for side in SIDES})
    ):
        for place, name in enumerate(properties.values):
            flags = properties.has[:, [place]].toarray().ravel() > 0
            # 8: pictures of a class; of fewer, hardly any test among so many can be significant.
            if flags.sum() >= 8:
                has.append(flags)
                names.append(name)
                order.append(-np.ones(len(flags)))
    found = []
    for name, flags, scores in zip(names, has, order, strict=True):
        sizes = [int(mask.sum()) for mask in (opened.is_gen, ~opened.is_gen)]
        counts = [int(flags[mask].sum()) for mask in (opened.is_gen, ~opened.is_gen)]
        places = np.flatnonzero(flags)
        ids = opened.all_ids[places[np.argsort(scores[places], kind="stable")]].tolist()
        found.append(of_counts(counts, sizes, len(has)) | {"words": name, "ids": ids})
    return [each for each in found if each["p_value"] <= LEVEL]


def finc(opened, rng):
    """finc-eval: the findings of a comparison of the samples."""
    return _answer(opened, opened.caches)


def finc_arrays(opened, rng):
    """finc-eval with the embeddings alone, without pictures and prompts."""
    sets = {
        side: fe.EmbeddingSet(opened.rows[side], ids=[name.partition("/")[2] for name in opened.ids[side]])
        for side in SIDES
    }
    return _answer(opened, sets)


def _answer(opened, sets):
    is_paired = bool(opened.prompts) and all("prompt" in each.columns for each in sets.values())
    comparison = fe.compare(sets["gen"], sets["ref"], pairs="prompt" if is_paired else None)
    assigned = {side: comparison.assign(opened.rows[side]) for side in SIDES} if comparison.kinds else {}
    ids = [kind.id for kind in comparison.kinds]
    answer = []
    for finding in comparison.findings:
        side = "gen" if finding.is_more else "ref"
        listed = [f"{side}/{name}" for name in finding.ids]
        if finding.kind == "kind":
            numbers = [ids.index(part) for part in finding.parts if part in ids]
            inside = {name: np.flatnonzero(np.isin(assigned[name], numbers)) for name in (side, *SIDES)}
            listed = [opened.ids[name][place] for name, places in inside.items() for place in places.tolist()]
        if finding.kind == "words":
            listed = [
                name
                for name, text in zip(opened.ids["gen"], opened.prompts["gen"], strict=True)
                if finding.name in text
            ]
        ends = finding.share_interval or (finding.interval if finding.kind == "kind" else None)
        difference = {"side": side, "ids": listed, "words": finding.sentence, "p_value": finding.p_value}
        if finding.share_gen is not None and finding.share_ref is not None:
            difference["share"] = abs(finding.share_gen - finding.share_ref)
        elif finding.kind == "words":
            difference["share"] = len(listed) / len(opened.ids["gen"])
        if ends is not None:
            difference["interval"] = sorted(abs(end) for end in ends) if min(ends) * max(ends) >= 0 else [0, max(ends)]
        answer.append(difference)
    return answer


def open_pictures(folder):
    """Return the samples of a folder by name: images, or arrays of frames."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            found[path.name] = np.stack([np.asarray(Image.open(frame)) for frame in sorted(path.iterdir())])
        elif path.suffix == ".png":
            found[path.name] = Image.open(path).convert("RGB")
    return found


TOOLS = {
    "finc-eval": finc,
    "finc-eval, embeddings alone": finc_arrays,
    "MMD witness": witness,
    "PCA of differences": principal,
    "k-means shares": clusters,
    "classifier": classifier,
    "words without CLIP": words,
}
