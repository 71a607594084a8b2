"""What a row costs does not follow the window: operators look at as many elements and events for
each row, and give as many results, when the window is 64 times as long."""

from __future__ import annotations

import pytest
from benchmarks.flat import LOOKS, TIMES, TRIALS, Trial, costs

WINDOW = 600  # rows, so that keys which drift stay within it
BATCH = 300


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_rows_looked_at_do_not_grow_with_the_window(trial: Trial) -> None:
    long = TIMES * WINDOW
    # Expiry goes by partitions, up to twice a 64th of the window: so many rows make it even out.
    small, large = costs(trial, [WINDOW, long], long + BATCH, 4_800, BATCH, parts=1)
    assert large.touched <= LOOKS * small.touched + 0.05
    assert large.results <= 1.1 * small.results + 0.01
