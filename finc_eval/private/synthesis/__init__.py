"""Private synthetic tables and images from noisy mean embeddings (DP-HP, DP-MERF)."""
