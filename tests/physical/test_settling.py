"""Open pieces of levels: keys that are renumbered keep theirs."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.model.time import INFINITY
from millstream.physical.events.settling import Pieces


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


@pytest.mark.parametrize("hold", [False, True])
def test_a_level_that_rises_and_falls_at_one_instant_is_no_piece(hold: bool) -> None:
    pieces = Pieces(hold=hold)
    codes, times = np.array([1, 1, 2, 1]), np.array([5, 5, 5, 7])
    ended = pieces.settle(codes, times, np.array([1, -1, 1, 1]))
    assert [part.tolist() for part in ended] == [[], [], [], []]
    assert len(pieces) == 2
    ended = pieces.settle(np.array([1, 2]), np.array([9, 9]), np.array([-1, -1]))
    assert [part.tolist() for part in ended] == [[1, 2], [7, 5], [9, 9], [1, 1]]
    assert not len(pieces)
    if hold:
        assert pieces.oldest == INFINITY
