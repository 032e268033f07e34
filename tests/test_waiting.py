"""Tests wait for what they need, never for a time: it is too short on a busy machine, or too long.

A sleep inside a loop that can end early, or that checks something in each turn, is part of waiting
for a condition; a loop that only counts is one long sleep. Where nothing is to happen, a test
drives the clock, counts turns of the event loop (`tests.loop_turns`), or waits for a message sent
after the one in question.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

MARK = "# time passes: "
"""Behind a sleep, with a reason: the time that passes is what is tested."""


def fixed_sleeps(node: ast.AST, *, looped: bool = False) -> Iterator[int]:
    """Yield the lines of sleeps that no loop with a condition repeats; `sleep(0)` is a turn."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and not looped:
            name = getattr(child.func, "attr", "") or getattr(child.func, "id", "")
            first = child.args[0] if child.args else None
            is_turn = isinstance(first, ast.Constant) and not first.value
            if name == "sleep" and not is_turn:
                yield child.lineno
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield from _rests_of_a_browser(child)
        repeats = isinstance(child, ast.While | ast.AsyncFor) or _looks(child)
        begins = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from fixed_sleeps(child, looped=repeats or (looped and not begins))


def _rests_of_a_browser(statement: ast.AST) -> Iterator[int]:
    """Yield the line of a statement that only lets a page rest; as part of a condition it may."""
    for each in [statement, *(statement.body if isinstance(statement, ast.For) else ())]:
        call = each.value if isinstance(each, ast.Expr) else None
        rests = isinstance(call, ast.Call) and ast.unparse(call.func).endswith(".wait_for_timeout")
        if rests and not _looks(statement):
            yield each.lineno


def _looks(node: ast.AST) -> bool:
    """Whether a node is a counting loop that looks at something in each turn."""
    looking = ast.Break | ast.Return | ast.Assert | ast.If
    return isinstance(node, ast.For) and any(isinstance(each, looking) for each in ast.walk(node))


def test_no_test_waits_for_a_fixed_time() -> None:
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        found += [
            f"{path.relative_to(TESTS)}:{number}: {lines[number - 1].strip()}"
            for number in fixed_sleeps(ast.parse(text))
            if MARK not in lines[number - 1]
        ]
    assert not found, "wait for a condition:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("time.sleep(1)", [1]),
        ("async def f():\n    await asyncio.sleep(SECONDS)", [2]),
        ("async def f():\n    await asyncio.sleep(0)", []),
        ("while not done():\n    sleep(0.01)", []),
        ("for step in steps:\n    def slow():\n        sleep(1)", [3]),
        ("for step in steps:\n    sleep(1)", [2]),
        ("for step in steps:\n    sleep(1)\n    assert not done()", []),
        ("def test_it():\n    page.wait_for_timeout(500)", [2]),
        ("def test_it():\n    wait_for(lambda: page.wait_for_timeout(50) or seen)", []),
    ],
)
def test_a_fixed_sleep_is_one_outside_a_loop(text: str, lines: list[int]) -> None:
    assert list(fixed_sleeps(ast.parse(text))) == lines
