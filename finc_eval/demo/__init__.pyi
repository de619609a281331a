from .planted import example_sets as example_sets
