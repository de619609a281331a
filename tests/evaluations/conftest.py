from _few_draws import few_draws  # noqa: F401
