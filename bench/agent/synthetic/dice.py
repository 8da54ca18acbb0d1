"""Reproducible chance for the synthetic data.

Only random.Random.random() is used, the one method whose sequence Python promises to keep from version to version.
"""

import math
import random


class Dice:
    def __init__(self, seed):
        self._random = random.Random(seed).random

    def chance(self, probability):
        return self._random() < probability

    def uniform(self, low, high):
        return low + (high - low) * self._random()

    def integer(self, low, high):
        """A whole number, both ends included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, items):
        return items[int(self._random() * len(items))]

    def weighted(self, weights):
        """A key of {key: weight}."""
        left = self._random() * sum(weights.values())
        for item, weight in weights.items():
            left -= weight
            if left < 0:
                return item
        return item

    def normal(self, mean, deviation):
        radius = math.sqrt(-2 * math.log(1 - self._random()))
        return mean + deviation * radius * math.cos(2 * math.pi * self._random())

    def shuffled(self, items):
        rest, out = list(items), []
        while rest:
            out.append(rest.pop(int(self._random() * len(rest))))
        return out
