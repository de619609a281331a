"""Features of Hermite polynomials, and kernels of coordinates made of them."""
