"""`python -m gateway --config FILE`: run a gateway or base site until SIGINT or SIGTERM."""

import asyncio
import contextlib
import gc
import logging
import os
import sys
from pathlib import Path
from typing import Any

from gateway.connectors.lost_cancellation import raise_if_cancelled
from gateway.gateway_settings import GatewaySettings, load_settings
from gateway.runtime import STOPPED, Gateway, MakeClient
from gateway.session.identity import BeginAgainError, OutdatedEpochError, StolenIdError
from gateway.site.step_guard import StepGuard
from gateway.site.stopped_queries import StoppedQueries
from host.files.site_directory import SiteDirectory
from host.service_process import on_stop_signals, read_command_line
from streamsql.algebra.user_functions import INSTALLED, modules_of
from streamsql.errors import FederationError

log = logging.getLogger("gateway")

MAX_LIVES = 5
"""How often one process starts above a predecessor's epoch before it gives up."""
COLLECTIONS = (50_000, 20, 100)
"""Thresholds of the garbage collector: state makes no cycles, see docs/decisions/0022."""


async def serve(
    settings: GatewaySettings,
    make_client: MakeClient | None = None,
    *,
    guarded: bool = False,
    settings_file: Path | None = None,
) -> None:
    """Run a gateway in its own data directory until cancelled.

    A directory that knows a lower epoch than the broker (a new disk, say) is taken above it.

    Args:
        settings: See `GatewaySettings`.
        make_client: Makes the message client with the given will.
        guarded: Whether the process is the gateway's own, so that the signals of timers may end a
            query, and in the last resort the process.
        settings_file: Where the settings were read, if they may be written.

    Raises:
        BeginAgainError: It is to start again, as with another name.
        DeploymentError: Something the operator can change; says what.
    """
    with SiteDirectory(Path(settings.data_dir)) as directory, contextlib.ExitStack() as guards:
        epoch = directory.next_epoch()
        stopped = StoppedQueries(directory.path / STOPPED)
        guard = None
        if guarded:
            guard = StepGuard(directory.path, settings.step, stopped)
            guard.start()
            guards.callback(guard.stop)
        for _ in range(MAX_LIVES):
            gateway = Gateway(
                *(settings, directory, epoch, make_client),
                budget=guard,
                stopped=stopped,
                settings_file=settings_file,
            )
            # A task of its own: TaskGroup of Python 3.11 drops a cancellation that comes while one
            # of its tasks fails, and what `cancelling` counts there is not ours.
            try:
                async with _status_of(gateway):
                    life = asyncio.create_task(gateway.run())
                    await life
            except OutdatedEpochError as error:
                raise_if_cancelled()
                log.warning("%s; starting again above it", error.message)
                epoch = directory.next_epoch(above=error.epoch)
        raise StolenIdError(
            f"other processes keep starting as {settings.gateway!r}",
            hint="give every gateway its own id",
        )


def _status_of(gateway: Gateway) -> contextlib.AbstractAsyncContextManager[None]:
    """Serve figures and health of a gateway whose settings name a port for them."""
    settings = gateway.settings
    if not settings.metrics_port:
        return contextlib.nullcontext()
    # A gateway without such a port does not load them.
    from gateway.process_metrics import gateway_figures  # noqa: PLC0415
    from host.metrics.service_figures import connection_problem  # noqa: PLC0415
    from host.metrics.status_server import serving_status  # noqa: PLC0415

    return serving_status(
        settings.metrics_host,
        settings.metrics_port,
        lambda: gateway_figures(gateway),
        lambda: connection_problem(gateway.client),
    )


async def _until_signalled(path: Path) -> None:
    """Serve until a signal.

    Raises:
        FederationError: Something the operator can change.
        Exception: A defect; also one in a callback, which nobody would see otherwise.
    """
    settings = load_settings(path)
    INSTALLED.allow(modules_of(settings.functions))
    loop = asyncio.get_running_loop()
    job = asyncio.create_task(serve(settings, guarded=True, settings_file=path))
    stopping: list[bool] = []
    defects: list[BaseException] = []

    def stop() -> None:
        stopping.append(True)
        job.cancel()

    def defect(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        log.error("%s", context.get("message"), exc_info=error)
        if error is not None:
            defects.append(error)
            job.cancel()

    loop.set_exception_handler(defect)
    on_stop_signals(stop)
    with contextlib.suppress(asyncio.CancelledError):
        await job
    if defects and not stopping:
        raise defects[0]


def main() -> int:
    """Return the exit status: 0 stopped, 2 something the operator can fix, 1 a defect of ours."""
    config = read_command_line("gateway", __doc__, "JSON settings file of this site")
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    try:
        asyncio.run(_until_signalled(config))
    except BeginAgainError as error:
        log.info("%s; starting again", error.message)
        os.execv(sys.executable, [sys.executable, "-m", "gateway", *sys.argv[1:]])  # noqa: S606
    except FederationError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        log.exception("a defect stopped this site")
        print(f"a defect ended this site: {_innermost(error)!r}", file=sys.stderr)
        return 1
    return 0


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


if __name__ == "__main__":
    sys.exit(main())
