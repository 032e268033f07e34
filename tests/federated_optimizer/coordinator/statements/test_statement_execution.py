"""Long scripts are parsed beside the event loop, which has sites and consoles to answer."""

import asyncio
import threading

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import ResultKind, StatementResult
from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.statements import statement_execution as scripts
from federated_optimizer.coordinator.statements.statement_execution import carry_out
from streamsql.errors import QueryError
from streamsql.syntax import parse_script
from streamsql.syntax.statements import Statement


async def ran(_: Statement) -> StatementResult:
    return StatementResult(ResultKind.DONE, "done")


@pytest.mark.parametrize(("rows", "beside"), [(1, False), (2_000, True)])
def test_a_long_script_does_not_block_the_loop(
    rows: int, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bool] = []
    real = parse_script

    def parse(text: str) -> tuple[Statement, ...]:
        parsed.append(threading.current_thread() is not threading.main_thread())
        return tuple(real(text))

    monkeypatch.setattr(scripts, "parse_script", parse)
    text = "INSERT INTO desks VALUES " + ", ".join(f"('desk {n}', {n})" for n in range(rows))
    (result,) = asyncio.run(carry_out(text, ran, OnTheLoop()))
    assert result.message == "done"
    assert parsed[-1] == beside


def test_a_mistake_in_a_long_script_is_told() -> None:
    text = "INSERT INTO desks VALUES " + ", ".join("('a')" for _ in range(4_000)) + " nonsense"
    with pytest.raises(QueryError):
        asyncio.run(carry_out(text, ran, OnTheLoop()))
