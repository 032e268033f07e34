"""A real static engine in a small federation, and a federation that is ready for it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from host.clocks import wall_clock
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.history.past_readings import PastReadings
from static_engine.lake.managed_tables import ManagedTables
from static_engine.service.static_engine import MakeExecutor, StaticEngine
from static_engine.sources.table_locations import Locations
from static_engine.static_settings import StaticSettings
from static_engine.tables.table_store import TableStore

OFTEN, SELDOM = 0.05, 3_600.0
"""Seconds between two looks at files; seldom: what shows at once shows because of a statement."""


@contextlib.asynccontextmanager
async def static_engine(  # noqa: PLR0913 - each is one seam
    federation: Any,
    *,
    epoch: int = 1,
    poll_seconds: float = OFTEN,
    past: PastReadings | None = None,
    managed: ManagedTables | None = None,
    make: MakeExecutor | None = None,
    clock: Callable[[], int] = wall_clock,
) -> AsyncIterator[StaticEngine]:
    """Run a static engine without Spark over the federation's folder.

    Args:
        federation: The fixture's.
        epoch: Of its session: higher after a restart.
        poll_seconds: Between two looks at files.
        past: What it has of the past.
        managed: Tables of the lake.
        make: Makes its executor; None: a local one.
        clock: Microseconds: when queries start and views are refreshed.
    """
    folder: Path = federation.folder
    settings = StaticSettings(
        broker="mqtt://unused",
        data_dir=str(folder / "static"),
        base_dir=str(folder),
        poll_seconds=poll_seconds,
        use_spark=False,
    )
    locations = Locations(folder, managed=managed)
    store = TableStore(locations, folder / "snapshots", snapshots=False)
    client = federation.broker.client("static")
    made = make or (lambda found, _: LocalExecutor(found, past))
    engine = StaticEngine(settings, epoch, client, store, made, past=past, clock=clock)
    job = asyncio.create_task(engine.run())
    try:
        yield engine
    finally:
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)


async def begin(
    federation: Any, script: str = "", *, gateways: int = 1, define_schema: bool = True
) -> Any:
    """Start a base site, gateways and a coordinator, and run a script there.

    Args:
        federation: The fixture's.
        script: Statements.
        gateways: How many.
        define_schema: Whether the sources of the sites are declared first.
    """
    await federation.site("base", "base")
    for number in range(1, gateways + 1):
        await federation.site(f"gw-{number}")
    coordinator = await federation.coordinator(define_schema=define_schema)
    if script:
        await coordinator.execute(script)
    return coordinator
