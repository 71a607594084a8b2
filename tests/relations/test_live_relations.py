"""Tables that change while a query runs, stops, crashes and starts again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from live_relations import check_as_it_changes
from random_relations import COUNTED, LOOKUPS, SNAPSHOTS

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

SHAPES = [*LOOKUPS, *COUNTED, *(shape for shape in SNAPSHOTS if "FINAL" not in SNAPSHOTS[shape])]
ROUNDS = int(os.environ.get("MILLSTREAM_EXAMPLES", "40")) // 40


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("shape", SHAPES)
def test_as_it_changes(shape: str, seed: int, tmp_path: Path) -> None:
    check_as_it_changes(shape, seed, tmp_path, engine="local")
