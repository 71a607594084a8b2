"""What a row costs follows neither the window nor the batch: operators look at as many elements and
events per row, and give as many results, when either is 64 times as long."""

from __future__ import annotations

import pytest
from benchmarks.flat import LOOKS, TIMES, TRIALS, Trial, costs

from benchmarks import flat_batches
from millstream.physical.joins.areas import area as areas

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


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
@pytest.mark.parametrize("trial", flat_batches.TRIALS, ids=lambda trial: trial.name)
def test_rows_looked_at_do_not_grow_with_the_batch(trial: flat_batches.Trial) -> None:
    small, large = (flat_batches.cost(trial, 12_800, batch) for batch in (200, 12_800))
    in_vain = areas.LOOKS + areas.FEW_LOOKS / 12_800  # before chains are left for a sweep
    assert large.touched <= LOOKS * small.touched + in_vain
    assert large.results == small.results
