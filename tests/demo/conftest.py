from _quick import quick_results  # noqa: F401
