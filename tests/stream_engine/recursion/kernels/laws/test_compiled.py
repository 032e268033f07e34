"""When kernels are compiled, and what they do when compiled code has no room."""

import importlib.util
import random
from typing import Any

import pytest

from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.strategies import recursive_operator
from stream_engine.testing.recursion_programs import cheapest_path, reachable
from streamsql.algebra.choices import Compiled
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import Delta, accumulate
from streamsql.data.types import Row
from streamsql.errors import UnsupportedError

compiled_view = pytest.importorskip(
    "stream_engine.recursion.kernels.compiled_view", reason="compiled kernels need numba"
)
YES, NO = RecursionOptions(compiled=Compiled.YES), RecursionOptions(compiled=Compiled.NO)


def operator(node: Fixpoint, options: RecursionOptions) -> Any:
    return recursive_operator(node, site="s", sites=("s",), epoch=1, options=options)


def test_without_a_compiler_it_says_so_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "numba" else find(name)
    )
    with pytest.raises(UnsupportedError, match="need the package numba") as caught:
        operator(reachable(), YES)
    assert "pando[compiled]" in caught.value.hint
    assert operator(reachable(), NO).description == "kernel: reachable (python)"


def test_nothing_is_compiled_unasked() -> None:
    assert operator(reachable(), YES).description == "kernel: reachable (compiled)"
    assert operator(reachable(), RecursionOptions()).description == "kernel: reachable (python)"


@pytest.mark.parametrize("node", [reachable(), cheapest_path()], ids=lambda node: node.name)
def test_a_network_that_grows_and_shrinks_gives_the_same_changes(node: Fixpoint) -> None:
    """Tables grow by doubling, and rows, nodes and groups that went are used again."""
    choice = random.Random(3)
    ours, theirs = operator(node, YES), operator(node, NO)
    links: dict[tuple[str, str], Row] = {}
    for step in range(240):
        low, high = step // 3, step // 3 + 12
        change: Delta = {}
        for _ in range(choice.randint(1, 6)):
            pair = (f"n{choice.randint(low, high)}", f"n{choice.randint(low, high)}")
            change[(*pair, choice.randint(0, 4))] = 1
        merged = {row[:2]: row for row in change}
        change = {row: 1 for row in merged.values() if row[:2] not in links}
        links.update({(row[0], row[1]): row for row in change})  # type: ignore[misc]
        for pair in [p for p in links if int(p[0][1:]) < low or choice.random() < 0.1]:
            row = links.pop(pair)
            if change.pop(row, None) is None:
                change[row] = -1
        for each in (ours, theirs):
            each.apply(0, change)
        assert ours.settle() == theirs.settle()
    assert set(ours.state_rows()) == set(theirs.state_rows())
    assert ours.description.endswith("(compiled)")


@pytest.mark.parametrize(
    ("row", "why"),
    [(("a", "z", 2**53), "integers beyond 2"), (("x1", "x2", 1), "nodes by")],
)
def test_without_room_the_interpreted_kernel_takes_over(
    row: Row, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = operator(cheapest_path(), YES), operator(cheapest_path(), NO)
    chain: list[Row] = [(f"n{i}", f"n{i + 1}", i) for i in range(15)]
    chain += [("x3", "x1", 5), ("n3", "a", 1)]
    shown: Delta = {}
    for delta in (dict.fromkeys(chain[:9], 1), {row: 1}, dict.fromkeys(chain[9:], 1)):
        if why == "nodes by" and row in delta:
            monkeypatch.setattr(compiled_view, "_MOST_KEYS", 200)
        for each in (ours, theirs):
            each.apply(0, delta)
        changed = ours.settle()
        assert changed == theirs.settle()
        accumulate(shown, changed)
    assert set(shown) == set(ours.state_rows())
    assert why in ours.description
    assert ours.description.startswith("kernel: cheapest (python")
