"""Local evidence: pictures with a part that looks otherwise at some place, tested on cells of their own network.

`find_local` in `find` is the test. Arrays come in and row numbers go out: ids, names and pages are elsewhere.
"""
