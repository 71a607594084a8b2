"""One look at an array says what NumPy says, whatever its memory is like."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from millstream.physical.kernels.scans import all_ones, ascends, climbs, greatest, least
from physical.accumulator_cases import EXAMPLES

INTS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1]), max_size=20)


def forms(values: list[int]) -> list[NDArray[np.int64]]:
    """Memory of its own, memory that cannot be written, and every other value of some."""
    own = np.array(values, np.int64)
    return [own, np.frombuffer(own.tobytes(), np.int64), np.repeat(own, 2)[::2]]


@EXAMPLES
@given(INTS)
def test_a_look(values: list[int]) -> None:
    for array in forms(values):
        assert least(array) == min(values, default=2**63 - 1)
        assert greatest(array) == max(values, default=-(2**63))
        assert ascends(array) == (values == sorted(values))
        assert climbs(array) == (values == sorted(set(values)))
        assert all_ones(array) == (set(values) <= {1})


@pytest.mark.parametrize("values", [[], [1], [1, 1], [1, 2], [2, 1]])
def test_few(values: list[int]) -> None:
    assert ascends(forms(values)[0]) == (values == sorted(values))
