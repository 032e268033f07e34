"""Scripts: one statement after another; the one that fails tells what those before it have done."""

import asyncio
from collections.abc import Awaitable, Callable

from federated_optimizer.coordinator.contract.coordinator_model import ResultKind, StatementResult
from federated_optimizer.coordinator.queries.planning_processes import Beside
from streamsql.errors import FederationError
from streamsql.script_progress import deed, newest
from streamsql.syntax import parse_script
from streamsql.syntax.statements import Statement

_SHORT = 1_000
"""Characters that are read at once; no text of that length takes noticeable time."""
_LONG = 20_000
"""Characters of a script that is parsed beside the event loop: an INSERT of 10,000 rows takes over
a second."""


async def carry_out(
    text: str, run: Callable[[Statement], Awaitable[StatementResult]], beside: Beside
) -> tuple[StatementResult, ...]:
    """Run the statements of a script in their order.

    Args:
        text: The script.
        run: Carries one statement out.
        beside: Where a text is read first of which nobody knows how long that takes.

    Raises:
        FederationError: The first statement that fails; what earlier ones did stays, and is told
            in `carried_out`.
    """
    results: list[StatementResult] = []
    deeds: list[str] = []
    long = len(text) > _LONG
    if len(text) > _SHORT:
        await beside.run(lambda: parse_script(text) and None, "reading the script")
    statements = await asyncio.to_thread(parse_script, text) if long else parse_script(text)
    for statement in statements:
        try:
            result = await run(statement)
        except FederationError as error:
            error.carried_out = newest(deeds)
            raise
        results.append(result)
        started = result.query if result.kind == ResultKind.QUERY else None
        query = started.id if started is not None else None
        deeds.append(deed(statement, result.message, query))
    return tuple(results)
