"""Every query text of the oracle has the answer of the definition when its plan is cut.

The usual run tries a few schedules of each; MILLSTREAM_EXAMPLES=300 tries so many.
"""

from __future__ import annotations

from random import Random

import pytest

from effort import examples
from fragments.fragment_agreement import check
from oracle.agreement import Bench
from oracle.judged_streams import DERIVED, STREAMS
from oracle.query_texts import TEXTS
from oracle.random_streams import Tape
from runtime.schedule_agreement import Trial, expected_of

TRIALS = examples(1)


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(STREAMS, DERIVED)


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS)
def test_text_in_fragments(bench: Bench, text: str) -> None:
    expected = expected_of(bench, text)
    random = Random(text)
    for _ in range(TRIALS):
        check(expected, Trial(Tape(random.randbytes(400))))
