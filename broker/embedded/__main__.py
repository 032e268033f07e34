"""`python -m broker.embedded`: run the embedded broker until SIGTERM or SIGINT.

Exit status: 0 after a clean stop, 2 when it cannot start as asked (address, port, files).
"""

import argparse
import asyncio
import gc
import logging
import sys
from pathlib import Path

from broker.embedded.access_rules import Access
from broker.embedded.embedded_broker import Broker
from broker.embedded.limits import Limits
from broker.embedded.server import Server, check_loopback
from broker.embedded.session_presence import port_is_taken, presence
from host.service_log import log_to_stderr
from host.service_process import on_stop_signals

_LOG = logging.getLogger("broker")


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m broker.embedded",
        description="Pando's embedded MQTT 3.1.1/5 broker; loopback only.",
    )
    parser.add_argument(
        "--port", type=int, default=1883, help="TCP port; 0: the system chooses a free one"
    )
    parser.add_argument("--host", default="127.0.0.1", help="loopback address (default 127.0.0.1)")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder for broker.json, which has the process id and the port",
    )
    parser.add_argument(
        "--passwords", type=Path, metavar="FILE", help="password file: users that may connect"
    )
    parser.add_argument(
        "--acl",
        type=Path,
        metavar="FILE",
        help="access list: topics that each user may publish and read",
    )
    parser.add_argument("--max-packet", type=int, default=Limits().max_packet_size, metavar="BYTES")
    parser.add_argument(
        "--log-level", default="info", choices=["debug", "info", "warning", "error"]
    )
    return parser.parse_args(argv)


async def _serve(options: argparse.Namespace, access: Access) -> None:
    broker = Broker(Limits(max_packet_size=options.max_packet), access)
    server = Server(broker)
    port = await server.start(options.host, options.port)
    stop = asyncio.Event()
    on_stop_signals(stop.set)
    try:
        with presence(options.data, options.host, port):
            # What was made at the start lives for ever: no collection need walk it again.
            gc.freeze()
            _LOG.info("listening on mqtt://%s:%d", options.host, port)
            await stop.wait()
            counters = broker.counters
            _LOG.info("stopping; %d messages received, %d sent", counters.received, counters.sent)
    finally:
        await server.stop()


def main(argv: list[str] | None = None) -> int:
    """Run the broker; return the exit status."""
    options = arguments(argv)
    log_to_stderr(options.log_level)
    try:
        check_loopback(options.host)
        asyncio.run(_serve(options, Access.read(options.passwords, options.acl)))
    except ValueError as error:
        print(f"broker: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"broker: {port_is_taken(options.host, options.port, error)}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
