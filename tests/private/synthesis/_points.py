"""The simplest generator there is, to test a fit with: free points, which are fitted and drawn."""

import torch


class Points:
    def __init__(self, head, classes, count, seed=0):
        self.head, self.classes, self.count = head, classes, count
        self.free = torch.randn(classes * count, head.width, generator=torch.Generator().manual_seed(seed))
        self.free.requires_grad_()
        self._chance = torch.Generator().manual_seed(seed)

    def parameters(self):
        return [self.free]

    def means(self, statistics):
        records = self.head(self.free, self._chance)
        return [statistic(records).view(self.classes, self.count, -1).mean(1) for statistic in statistics]

    def sample(self, labels, seed):
        """A point of the class for each label, the points of a class in turn."""
        generator = torch.Generator().manual_seed(seed)
        chosen = torch.empty(len(labels), dtype=torch.long)
        for label in range(self.classes):
            places = (labels == label).nonzero()[:, 0]
            order = torch.randperm(self.count, generator=generator).repeat(-(-len(places) // self.count))
            chosen[places] = label * self.count + order[: len(places)]
        with torch.no_grad():
            return self.head(self.free[chosen], generator)
