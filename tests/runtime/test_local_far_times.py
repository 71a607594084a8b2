"""Times far apart: from the first instant that there may be to the last."""

from __future__ import annotations

import pytest

from runtime.element_cases import at, check

FIRST, LAST = -(2**62), 2**62 - 1


@pytest.mark.parametrize(
    "window",
    ["range=UNBOUNDED", "range=1152921504606846976", "range=1152921504606846976 slide=5"],
)
def test_windows_over_all_times(window: str) -> None:
    check(
        f"""
        Join kind=inner
          TimeWindow {window}
            Source stream=S
          Aggregate compute=[count(*) AS n]
            TimeWindow {window}
              Source stream=R
        """,
        S=[at(FIRST, 1), at(-7, 2), at(5, 1), at(LAST, 1)],
        R=[],
    )
