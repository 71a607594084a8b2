"""Accumulators: aggregates that follow the rows that come to their groups and go."""

from millstream.physical.accumulators.accumulator import Accumulator, Answer
from millstream.physical.accumulators.choose import accumulator

__all__ = ["Accumulator", "Answer", "accumulator"]
