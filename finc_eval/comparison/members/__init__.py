"""Members of modes: which samples a mode marks, and what their neighbors tell of others."""
