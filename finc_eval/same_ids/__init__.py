"""Two runs of a generator with the same prompts and seeds: what changed, what broke, and whether anything is worse."""
