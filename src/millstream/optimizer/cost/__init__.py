"""The cost model: rates, validity, state and processing costs of physical plans (K ch. 22)."""

from millstream.optimizer.cost.characteristics import Characteristics
from millstream.optimizer.cost.estimate import Estimate, Estimates, estimate
from millstream.optimizer.cost.work import Constants, Primitive, known_constants

__all__ = [
    "Characteristics",
    "Constants",
    "Estimate",
    "Estimates",
    "Primitive",
    "estimate",
    "known_constants",
]
