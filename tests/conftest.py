"""What all tests share: expected texts in files, and `--accept` to write them anew; a server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from effort import load_profile
from millstream.physical.expressions import programs
from postgres_server import postgres_server, server, url  # noqa: F401

# Tests say which engine they mean, or mean the quick one; so do the documents that they run.
os.environ["MILLSTREAM_ENGINE"] = "local"
# Nor do they depend on what was measured on this machine.
os.environ["XDG_CONFIG_HOME"] = os.devnull + "/config"
load_profile()
# They have few rows, and mean the machine code that many would have.
programs.WORTH = 0

TESTS = Path(__file__).parent

#: Tests that take long, by folder or module, beside random tests and those that need a server.
SLOW = """
benchmarks oracle packaging relations views
checkpoint/test_crashes checkpoint/test_fixtures checkpoint/test_kills
checkpoint/test_private_folders checkpoint/test_spool
cli/test_demo cli/test_explain cli/test_run cli/test_shell
connectors/sinks/test_sink_kills connectors/sinks/test_sinks connectors/test_nexmark_generator
fragments/test_fragment_texts
optimizer/test_alternatives optimizer/test_calibration optimizer/test_estimates_of_all_plans
optimizer/test_join_orders_by_cost optimizer/test_join_orders_plans optimizer/test_shedding_plans
optimizer/test_shedding_queries
papers/test_figures papers/test_nexmark
physical/test_accumulator_scale physical/test_coalesce physical/test_expression_formulas
physical/test_expression_memory physical/test_expression_random physical/test_expression_samples
physical/test_flat_cost physical/test_lookup_join physical/test_memory physical/test_multi_join
physical/test_threshold_semi_join
runtime/test_float_sums_long runtime/test_local_last_rows runtime/test_local_long_runs
runtime/test_local_long_texts runtime/test_local_lookups runtime/test_local_net_groups
runtime/test_local_query_texts runtime/test_local_tables runtime/test_local_unusual_queries
runtime/test_running_stress
sql/test_fuzz sql/test_long_and_deep sql/test_reserved_words sql/test_round_trip
sql/test_whole_calls
test_docs test_examples test_one_plan
""".split()  # noqa: SIM905

Comparison = Callable[[Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--accept",
        action="store_true",
        help="write expected texts anew from what the program gives; then read the difference",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import slow modules that are deselected."""
    leaves_out = "not slow" in str(config.getoption("markexpr"))
    return True if leaves_out and _is_listed(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests as `spark` or `slow`, so that `make quick` can leave them out."""
    for item in items:
        groups = {mark.args[0] for mark in item.iter_markers("xdist_group")}
        is_random = getattr(getattr(item, "function", None), "is_hypothesis_test", False)
        engines = [*groups, *_parameters(item)]
        if "spark" in engines or item.path.is_relative_to(TESTS / "spark"):
            item.add_marker("spark")
        if groups or is_random or _is_listed(item.path):
            item.add_marker("slow")


def _parameters(item: pytest.Item) -> list[str]:
    """The parameters of a test that are texts."""
    given = getattr(item, "callspec", None)
    return [] if given is None else [v for v in given.params.values() if isinstance(v, str)]


def _is_listed(path: Path) -> bool:
    return any(path.with_suffix("").is_relative_to(TESTS / each) for each in SLOW)


@pytest.fixture
def matches_file(request: pytest.FixtureRequest) -> Comparison:
    """Require a text to be that of a file, whose leading `--` lines are comments and stay."""
    accept = bool(request.config.getoption("--accept"))

    def compare(file: Path, actual: str) -> None:
        comments, expected = _split(file.read_text(encoding="utf-8") if file.exists() else "")
        actual = actual.rstrip("\n") + "\n"
        if accept and actual != expected:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(comments + actual, encoding="utf-8")
        else:
            assert actual == expected, f"{file.name} differs; --accept writes it anew"

    return compare


def _split(text: str) -> tuple[str, str]:
    """The comments at the top of a file, and the rest."""
    lines = text.splitlines(keepends=True)
    count = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    return "".join(lines[:count]), "".join(lines[count:])
