"""Sets of samples: folders, zips, tar shards, arrays, datasets …, all read as one stream in a fixed order.

`open_source(x)` finds out what `x` is; the `Source` it returns knows its samples' ids, decodes them a few
ahead, and has a `manifest` that changes when, and only when, a sample does.
"""

from finc_eval.samples.opening import Samples, open_source
from finc_eval.samples.source import Manifest, Pixels, Sample, Source, ahead, fingerprint
from finc_eval.samples.traits import Traits

__all__ = ["Manifest", "Pixels", "Sample", "Samples", "Source", "Traits", "ahead", "fingerprint", "open_source"]
