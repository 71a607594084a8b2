"""How much tests try: the usual run draws the same examples each time and kills a few times;
MILLSTREAM_EXAMPLES=3000 draws so many new ones, and MILLSTREAM_KILLS=30 kills so often."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

WANTED = os.environ.get("MILLSTREAM_EXAMPLES")


def examples(usual: int) -> int:
    """How many examples are drawn."""
    return int(WANTED or usual)


def kills(usual: int) -> int:
    return int(os.environ.get("MILLSTREAM_KILLS") or usual)


def load_profile() -> None:
    """What holds for all random tests that do not say otherwise."""
    settings.register_profile(
        "millstream",
        derandomize=WANTED is None,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("millstream")
