"""`python -m gateway.join URL TOKEN`: join a federation, and run the gateway with `--run`."""

import argparse
import os
import sys
from pathlib import Path

from gateway.join.joining import join
from streamsql.errors import FederationError


def main() -> int:
    """Return the exit status: 0 joined, 2 something the operator can fix."""
    parser = argparse.ArgumentParser(prog="python -m gateway.join", description=__doc__)
    parser.add_argument("url", metavar="URL", help="the console, e.g. https://console.example:8420")
    parser.add_argument("token", metavar="TOKEN", help="from `pando gateway provision NAME`")
    parser.add_argument("--data", type=Path, help="folder for settings, credentials and data")
    parser.add_argument("--ca", type=Path, help="authority of the console's certificate")
    parser.add_argument("--metrics-port", type=int, default=0, help="port of /metrics and /health")
    parser.add_argument("--run", action="store_true", help="run the gateway then")
    arguments = parser.parse_args()
    try:
        settings = join(
            *(arguments.url, arguments.token, arguments.data, arguments.ca),
            metrics_port=arguments.metrics_port,
        )
    except FederationError as error:
        print(error, file=sys.stderr)
        return 2
    return start(settings, run=arguments.run)


def start(settings: Path, *, run: bool) -> int:
    """Print the command that runs a gateway; with `run` become it."""
    print(f"joined; to run the gateway: python -m gateway --config {settings}", flush=True)
    if run:
        words = [sys.executable, "-m", "gateway", "--config", str(settings)]
        os.execv(sys.executable, words)  # noqa: S606 - our own program, and no shell
    return 0


if __name__ == "__main__":
    sys.exit(main())
