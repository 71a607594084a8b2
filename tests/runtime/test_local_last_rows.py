"""Aggregates over count windows take the rows as they come: the answer is that of the window.

The streams have ties within and across batches, NULLs and disorder; a window may hold fewer rows
than come in one instant.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from oracle.query_texts import texts
from runtime.schedule_checks import SESSIONS, check_under_schedules

TEXTS = list(texts(Path(__file__).parent / "queries" / "last_rows.sql"))


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS)
def test_aggregate_of_the_last_rows_under_schedules(text: str) -> None:
    check_under_schedules(text)


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS)
def test_there_is_no_window(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = SESSIONS[0].sql(text).explain(physical=True).partition("\n\n")[2]
    assert "CountWindow" not in plan
