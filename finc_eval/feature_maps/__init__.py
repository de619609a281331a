"""Feature maps φ with φ(x)·φ(y) ≈ k(x, y): random Fourier, cosine and Hermite features."""
