"""Open pieces of levels: keys that are renumbered keep theirs."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.physical.settling import Pieces


def rises(pieces: Pieces, codes: np.ndarray, time: int) -> None:
    pieces.settle(codes, np.full(len(codes), time), np.ones(len(codes), np.int64))


@pytest.mark.parametrize("burst", [0, 20_000])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_keys_that_are_renumbered_keep_their_pieces(burst: int, share: float) -> None:
    random = np.random.default_rng(3)
    pieces = Pieces(hold=True)
    extra = np.arange(500, 500 + burst)  # come and go
    rises(pieces, extra, 1)
    pieces.settle(extra, np.full(burst, 2), np.full(burst, -1))
    for time in (3, 4, 5):
        rises(pieces, np.flatnonzero(random.random(500) < share * time / 5), time)
    codes, starts, weights = pieces.save().values()
    kept = np.union1d(codes, random.integers(0, 500 + burst, 50))
    renumbered = np.full(500 + burst + 1, -1)
    renumbered[kept] = np.arange(len(kept))

    pieces.renumber(renumbered)

    after = pieces.save()
    assert after["codes"].tolist() == renumbered[codes].tolist()
    assert after["starts"].tolist() == starts.tolist()
    assert after["weights"].tolist() == weights.tolist()
    assert len(pieces) == len(codes)
    if len(starts):
        assert pieces.oldest == starts.min()
    assert pieces.nbytes < 200_000
    more = np.arange(len(kept))
    rises(pieces, more, 6)
    assert len(pieces) == len(codes) + len(more)
    ended, since, _, _ = pieces.end()
    expected = [*zip(renumbered[codes], starts, strict=True), *((code, 6) for code in more)]
    assert sorted(zip(ended, since, strict=True)) == sorted(expected)
