"""Two models on the same prompts: the prompts and words whose images differ, and the diversity within a prompt."""
