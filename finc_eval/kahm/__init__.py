"""Kernel affine hull machines: classifier, membership score, fabricated data, federated classification."""
