"""stub, replaced by the helper's"""
import numpy as np
from scipy.special import betaincinv
def clopper_pearson(k, n, confidence):
    a = (1 - confidence) / 2
    k = np.asarray(k, float)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1e-9), n - k + 1, a), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1e-9), 1 - a), 1.0)
    return low, high
def mover(l1, p1, u1, l2, p2, u2):
    d = p1 - p2
    return d - np.hypot(p1 - l1, u2 - p2), d + np.hypot(u1 - p1, p2 - l2)
