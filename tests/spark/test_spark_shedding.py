"""Rows that are dropped are the same on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimizer.shed_queries import answer, query_of, session, write

pytestmark = pytest.mark.xdist_group("spark")


def test_the_same_rows_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the shares are the same; an engine that costs more keeps less."""
    shares = {"A": 0.6, "B": 0.7}
    monkeypatch.setattr("millstream.api.admission.Admission.shares", lambda self: shares)
    for name in ("A", "B"):
        write(tmp_path, name, 400)
    local, spark = (
        answer(query_of(session(tmp_path, 10_000, engine, shed=True, processors=0.5)))
        for engine in ("local", "spark")
    )
    assert local
    assert spark == local
