"""`python -m broker.embedded`: run the embedded broker until SIGTERM or SIGINT.

Exit status: 0 after a clean stop, 2 when it cannot start as asked (address, port, files).
"""

import argparse
import asyncio
import gc
import logging
import sys
from pathlib import Path

from broker.embedded.access_control import AccessControl
from broker.embedded.access_rules import Access
from broker.embedded.dynamic_access import DynamicAccess
from broker.embedded.embedded_broker import Broker
from broker.embedded.limits import Limits
from broker.embedded.server import Server
from broker.embedded.session_presence import port_is_taken, presence
from broker.embedded.tls_listener import check_address, server_context
from host.service_log import log_to_stderr
from host.service_process import on_stop_signals

_LOG = logging.getLogger("broker")


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m broker.embedded",
        description="Pando's embedded MQTT 3.1.1/5 broker. Without TLS and accounts it listens on "
        "loopback only.",
    )
    parser.add_argument(
        "--port", type=int, default=1883, help="TCP port; 0: the system chooses a free one"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address (default 127.0.0.1)")
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
    parser.add_argument(
        "--dynamic-security",
        type=Path,
        metavar="FILE",
        help="accounts and roles in the JSON of Mosquitto's plug-in; changed by commands on "
        "$CONTROL/dynamic-security/v1",
    )
    parser.add_argument(
        "--tls-cert", type=Path, metavar="FILE", help="the broker's certificate, PEM: TLS only"
    )
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key, PEM")
    parser.add_argument(
        "--tls-ca",
        type=Path,
        metavar="FILE",
        help="CA certificates, PEM: a client needs a certificate of one of them, whose common "
        "name is its user name",
    )
    parser.add_argument("--max-packet", type=int, default=Limits().max_packet_size, metavar="BYTES")
    parser.add_argument(
        "--log-level", default="info", choices=["debug", "info", "warning", "error"]
    )
    return parser.parse_args(argv)


def _access(options: argparse.Namespace) -> AccessControl:
    if options.dynamic_security is None:
        return Access.read(options.passwords, options.acl)
    if options.passwords is not None or options.acl is not None:
        raise ValueError(
            "--dynamic-security has accounts and rights: leave --passwords and --acl out"
        )
    return DynamicAccess.read(options.dynamic_security)


async def _serve(options: argparse.Namespace) -> None:
    broker = Broker(Limits(max_packet_size=options.max_packet), _access(options))
    server = Server(broker)
    tls = server_context(options.tls_cert, options.tls_key, options.tls_ca)
    accounts = options.dynamic_security is not None or (
        options.passwords is not None and options.acl is not None
    )
    address = check_address(options.host, secured=tls is not None and accounts)
    port = await server.start(address, options.port, tls)
    scheme = "mqtt" if tls is None else "mqtts"
    stop = asyncio.Event()
    on_stop_signals(stop.set)
    try:
        with presence(options.data, f"{scheme}://{options.host}:{port}"):
            # What was made at the start lives for ever: no collection need walk it again.
            gc.freeze()
            _LOG.info("listening on %s://%s:%d", scheme, options.host, port)
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
        asyncio.run(_serve(options))
    except ValueError as error:
        print(f"broker: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"broker: {port_is_taken(options.host, options.port, error)}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
