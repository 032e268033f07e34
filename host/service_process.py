"""What every service's process does at its start: command line, log, signals."""

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from host.service_log import log_to_stderr

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def read_command_line(program: str, description: str | None, settings: str) -> Path:
    """Read `--config FILE` and `--log-level`, begin to log, and return the path of the settings.

    Args:
        program: Module that was started.
        description: Of the help text.
        settings: What the file is, for the help text.
    """
    match sys.argv[1:]:
        case ["--config", path]:
            log_to_stderr("INFO")
            return Path(path)
        case ["--config", path, "--log-level", ("INFO" | "WARNING") as level]:
            log_to_stderr(level)
            return Path(path)
        case _:
            return _read_other_options(program, description, settings)


def _read_other_options(program: str, description: str | None, settings: str) -> Path:
    # 0.3 MB that a service which is started as usual does not load.
    import argparse  # noqa: PLC0415

    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--config", required=True, type=Path, help=settings)
    parser.add_argument("--log-level", default="INFO", choices=["DEBUG", "INFO", "WARNING"])
    arguments = parser.parse_args()
    log_to_stderr(arguments.log_level)
    config: Path = arguments.config
    return config


def on_stop_signals(stop: Callable[[], object]) -> None:
    """Call `stop` on the running loop at SIGINT and SIGTERM, in place of ending."""
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
