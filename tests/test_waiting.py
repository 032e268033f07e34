"""Tests wait for what they need, never for a time: it is too short on a busy machine, or too long.

A sleep inside a loop is part of waiting for a condition. Where nothing is to happen, a test drives
the clock, counts turns of the event loop (`tests.loop_turns`), or waits for a message sent after
the one in question.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

PART_OF_THE_TEST: Mapping[str, tuple[int, str]] = {
    "broker/test_outages.py": (2, "a client is silent for longer than its keep-alive"),
    "broker/test_sessions.py": (1, "a session expires by the clock of another process"),
    "end_to_end/messages.py": (1, "how long the caller wants silence to last"),
    "end_to_end/test_faults.py": (2, "sites of other processes are silent for so long"),
    "federated_optimizer/coordinator/test_beside.py": (3, "work beside that hangs"),
    "federated_optimizer/coordinator/test_everything_at_once.py": (2, "when things happen"),
    "federated_optimizer/coordinator/test_repairs.py": (1, "how long everything is lost"),
    "host/mqtt/test_event_inbox.py": (2, "a reader that is slow"),
    "ui/cli/test_commands.py": (1, "an answer that is slow"),
}
"""Where the time that passes is what is tested: how often, and what it is."""

STILL_FIXED: Mapping[str, int] = {
    "deploy/local/test_supervisor.py": 1,
    "end_to_end/test_recursion_gateways.py": 1,
    "federated_optimizer/coordinator/test_alarms.py": 1,
    "federated_optimizer/coordinator/test_refreshed_views.py": 1,
    "federated_optimizer/coordinator/test_repairs.py": 3,
    "federated_optimizer/coordinator/test_system_sources.py": 2,
    "gateway/site/test_host.py": 1,
    "gateway/site/test_system_reports.py": 3,
    "gateway/test_closing_windows.py": 1,
    "gateway/test_processes.py": 8,
    "gateway/test_restart.py": 1,
    "gateway/wrappers/test_calendar.py": 1,
    "host/mqtt/test_paho_client.py": 1,
    "static_engine/refreshing/test_refreshed_queries.py": 4,
    "static_engine/test_service.py": 6,
    "ui/api/test_changes.py": 1,
    "ui/conftest.py": 1,
    "ui/map/test_layers.py": 1,
}
"""Where a fixed time is still waited for; only ever fewer."""


def fixed_sleeps(node: ast.AST, *, looped: bool = False) -> Iterator[int]:
    """Yield the lines of sleeps for a time that no loop repeats; `sleep(0)` is a turn."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and not looped:
            name = ast.unparse(child.func).rpartition(".")[2]
            first = child.args[0] if child.args else None
            is_turn = isinstance(first, ast.Constant) and not first.value
            if name == "sleep" and not is_turn:
                yield child.lineno
        repeats = isinstance(child, ast.While | ast.For | ast.AsyncFor)
        begins = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from fixed_sleeps(child, looped=repeats or (looped and not begins))


def test_no_test_waits_for_a_fixed_time() -> None:
    counts = Counter[str]()
    for path in TESTS.rglob("*.py"):
        lines = list(fixed_sleeps(ast.parse(path.read_text(encoding="utf-8"))))
        counts += Counter({path.relative_to(TESTS).as_posix(): len(lines)})
    allowed = Counter(STILL_FIXED)
    allowed.update({path: count for path, (count, _why) in PART_OF_THE_TEST.items()})
    assert counts - allowed == {}, "wait for a condition"
    assert allowed - counts == {}, "fewer than the tables say: lower them"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("time.sleep(1)", [1]),
        ("async def f():\n    await asyncio.sleep(SECONDS)", [2]),
        ("async def f():\n    await asyncio.sleep(0)", []),
        ("while not done():\n    sleep(0.01)", []),
        ("for step in steps:\n    def slow():\n        sleep(1)", [3]),
    ],
)
def test_a_fixed_sleep_is_one_outside_a_loop(text: str, lines: list[int]) -> None:
    assert list(fixed_sleeps(ast.parse(text))) == lines
