"""A set with columns, groups and pictures, as names read it."""

import numpy as np

from finc_eval.embeddings.base import ArrayEmbeddings


class Described(ArrayEmbeddings):
    def __init__(self, n, columns=None, groups=None, images=None, group_column=None):
        super().__init__(np.zeros((n, 2), np.float32))
        self._columns, self._group_values, self._images = columns or {}, groups, images
        self.columns, self.group_column = tuple(self._columns), group_column

    def column(self, name):
        return [str(value) for value in self._columns[name]]

    def group_hashes(self):
        return None if self._group_values is None else np.asarray(self._group_values, np.uint64)

    def images_at(self, indices):
        return None if self._images is None else [self._images[index] for index in indices]
