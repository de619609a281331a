"""Pictures of fixed prompts: the same prompts and seeds at every evaluation, compared pair by pair."""
