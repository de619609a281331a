"""Every metric refuses wrong input in one sentence."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.measures.authenticity import authpct
from finc_eval.measures.inception_score import inception_score
from finc_eval.measures.kid import kid, kid_interval
from finc_eval.measures.mind import mind
from finc_eval.measures.mmd import cmmd, mmd
from finc_eval.measures.precision_recall import precision_recall
from finc_eval.measures.vendi import gaussian_vendi, vendi, vendi_interval

X, Y = (torch.randn(n, 12, generator=torch.Generator().manual_seed(n)) for n in (50, 33))
NAN, INFINITE = (torch.cat([X[:3], torch.full((1, 12), odd), X[4:]]) for odd in (torch.nan, torch.inf))
LOGITS = X[:9]
EYE = np.eye(9)

WRONG = {
    "train has 1 sample, too few for 1 neighbor of each: pass at least 2": lambda: authpct(X, X[:1]),
    "the logits: 9 samples do not make 10 splits, ask for 1 to 9": lambda: inception_score(LOGITS),
    "are probabilities: give the logits before the softmax": lambda: inception_score(LOGITS.softmax(1), splits=2),
    "the logits: the embedding in row 3 is not finite": lambda: inception_score(NAN, splits=2),
    "comes from its splits: ask for two at least": lambda: inception_score(LOGITS, splits=1).interval(),
    "the reference has 33 samples, fewer than KID's subsets of 40": lambda: kid(X, Y, subset_size=40),
    "needs at least 3 samples in each set, the reference has 2": lambda: kid_interval(X, Y[:2]),
    "generated set has 12 entries per embedding and the reference 5": lambda: kid(X, Y[:, :5]),
    "subsets must be a whole number of at least 1, got 0": lambda: kid(X, Y, subsets=0),
    "the generated set: the embedding in row 3 is not finite": lambda: kid_interval(INFINITE, X),
    "projections must be a whole number of at least 1, got 0": lambda: mind(X, Y, projections=0),
    "generated set has 12 entries per embedding and the reference 3": lambda: mind(X, Y[:, :3]),
    "this metric needs at least 3 samples in each set, the generated": lambda: mmd(X[:2], Y, 2.0),
    "has 12 entries per embedding and the reference 7": lambda: cmmd(X, Y[:, :7]),
    "sigma must be a positive number, got 0": lambda: mmd(X, Y, 0.0),
    "an embedding is zero, which has no direction: leave": lambda: cmmd(torch.zeros(3, 12), Y),
    r"must be positive, or math.inf, got 0": lambda: vendi(X, order=0),
    "an embedding is zero, which has no direction: leave it out": lambda: vendi(torch.cat([X, torch.zeros(1, 12)])),
    "sigma must be a positive number, got -1": lambda: gaussian_vendi(X, -1.0),
    "the embedding in row 3 is not finite": lambda: vendi(NAN),
    r"the interval of a Vendi score needs an order of at least 1, got 0\.5": lambda: vendi_interval(X, order=0.5),
    "has 12 independent samples, too few for 10 blocks": lambda: vendi_interval(X[:12]),
    "gen has 5 samples, too few for 5 neighbors of each: pass at least 6": lambda: precision_recall(EYE[:5], EYE),
    "ref has 4 samples, too few for 4 neighbors of each: pass at least 5": lambda: precision_recall(EYE, EYE[:4], k=4),
    "gen has 9 entries per embedding and ref 8: extract both with the same": lambda: precision_recall(EYE, EYE[:, :8]),
    "ref: the embedding in row 0 is not finite": lambda: precision_recall(EYE, np.full((9, 9), np.inf)),
    r"'prcd' \(did you mean \"prdc\"\?\)": lambda: precision_recall(EYE, EYE, convention="prcd"),
    "k must be a whole number of at least 1, got 0": lambda: precision_recall(EYE, EYE, k=0),
    r"got 'recal' \(did you mean \"recall\"\?\)": lambda: precision_recall(EYE, EYE).interval("recal"),
    "confidence must lie between 0 and 1, got 95": lambda: precision_recall(EYE, EYE).interval("recall", 95),
}


@pytest.mark.parametrize("message", WRONG)
def test_bad_input_is_named(message):
    with pytest.raises(fe.FincEvalError, match=message):
        WRONG[message]()
