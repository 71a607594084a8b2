"""Windows over results whose rows live one instant, but may come as one element for several."""

from __future__ import annotations

import pytest

from runtime.element_cases import at, check

RESULTS = {
    "aggregate": """
  Map columns=[k AS S.k, n AS S.v]
    Aggregate by=[S.k AS k] compute=[count(*) AS n]
      Source stream=S""",
    "difference": """
  Difference
    Source stream=S
    Source stream=R""",
    "semi-join": """
  Join kind=semi on=S.k = R.k
    Source stream=S
    TimeWindow range=9
      Source stream=R""",
    "top-n": """
  TopN limit=1 order=[S.k]
    Source stream=S""",
    "RSTREAM": """
  Rstream
    TimeWindow range=4
      Source stream=S""",
}
WINDOWS = {
    "time": "TimeWindow range=3",
    "count": "CountWindow rows=2 order=[S.k]",
    "partitioned": "PartitionedWindow by=[S.k] rows=2 order=[S.v] slide=2",
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("result", RESULTS)
def test_a_window_takes_each_instant_of_a_result(window: str, result: str) -> None:
    inputs = {"S": [at(5, 1), at(6, 1), at(6, 2), at(7, 2), at(9, 1)]}
    if "stream=R" in RESULTS[result]:
        inputs["R"] = [at(4, 1), at(7, 2)]
    check(WINDOWS[window] + RESULTS[result], **inputs)
