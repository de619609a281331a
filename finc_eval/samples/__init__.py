"""Sets of samples: folders, zips, tar shards, arrays, datasets …, all read as one stream in a fixed order.

`open_source(x)` recognizes `x` and returns a `Source`. It knows the ids of its samples, decodes a few samples ahead,
and has a `manifest` that changes if, and only if, a sample changes.
"""
