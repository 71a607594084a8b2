"""Unusual queries have the answer of the definition, in every form of the plan.

The streams have ties, NULLs, negative times, rows that hold for ever, and nothing at all; they end
at different times. The usual run tries a few schedules of each; MILLSTREAM_EXAMPLES=50 tries so
many on as many streams.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from oracle.query_texts import texts
from runtime.schedule_checks import (
    check_under_schedules,
)

TEXTS = list(texts(Path(__file__).parent / "queries" / "unusual.sql"))


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS)
def test_unusual_query_under_schedules(text: str) -> None:
    check_under_schedules(text)
