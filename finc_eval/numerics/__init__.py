"""Mathematics on tensors: moments, precision of products, eigenpairs, rotation, kernels, bandwidth, inference."""
