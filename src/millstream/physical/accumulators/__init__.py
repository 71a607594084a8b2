"""Accumulators: incremental aggregates over groups whose rows come and go."""

from millstream.physical.accumulators.accumulator import Accumulator, Answer, TableAccumulator
from millstream.physical.accumulators.choose import accumulator

__all__ = ["Accumulator", "Answer", "TableAccumulator", "accumulator"]
