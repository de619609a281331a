"""Sets of samples: folders, zips, tar shards, arrays, datasets …, all read as one stream in a fixed order.

`open_source(x)` recognizes `x` and returns a `Source`. It knows the ids of its samples, decodes a few samples ahead,
and has a `manifest` that changes if, and only if, a sample changes.
"""

from finc_eval.samples.opening import Samples, open_source
from finc_eval.samples.source import Manifest, Pixels, Sample, Source, ahead, fingerprint
from finc_eval.samples.traits import Traits

__all__ = ["Manifest", "Pixels", "Sample", "Samples", "Source", "Traits", "ahead", "fingerprint", "open_source"]
