"""`python -m gateway --config FILE`: run a gateway or base site until SIGINT or SIGTERM."""

import argparse
import asyncio
import contextlib
import gc
import logging
import signal
import sys
from pathlib import Path

from gateway.runtime import serve
from gateway.settings import load_settings
from streamsql.errors import FederationError


async def _until_signalled(path: Path) -> None:
    job = asyncio.create_task(serve(load_settings(path)))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, job.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await job


def main() -> int:
    """Return the process's exit status: 0 stopped, 2 something the operator can fix."""
    parser = argparse.ArgumentParser(prog="python -m gateway", description=__doc__)
    parser.add_argument("--config", required=True, type=Path, help="JSON settings of this site")
    parser.add_argument("--log-level", default="INFO", choices=["DEBUG", "INFO", "WARNING"])
    arguments = parser.parse_args()
    logging.basicConfig(level=arguments.log_level, format="%(levelname)s %(message)s")
    gc.freeze()
    try:
        asyncio.run(_until_signalled(arguments.config))
    except FederationError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
