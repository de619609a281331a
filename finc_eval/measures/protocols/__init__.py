"""Cards of published protocols: the metric, the samples and the reference of each."""
