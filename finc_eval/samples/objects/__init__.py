"""Sets that are objects of Python: data sets, loaders, iterators and arrays."""
