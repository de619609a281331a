from .examples import example_sets as example_sets
