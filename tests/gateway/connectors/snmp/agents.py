"""An SNMP agent on loopback: snmpsim in a process of its own."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from broker.free_ports import free_port

SECONDS = 30.0
AUTH_KEY, PRIV_KEY = "authpass1", "privpass1"
_PING = bytes.fromhex("302602010104037064" + "75a01c02040102030402010002010030") + bytes.fromhex(
    "0e300c06082b060102010101000500"
)
"""A GET of sysDescr.0 for the community `pdu`, which every agent here has."""


@contextlib.contextmanager
def agent(
    folder: Path, *records: str, port: int = 0, users: Sequence[tuple[str, str, str]] = ()
) -> Iterator[int]:
    """Serve records `OID|type|value` as community and context `pdu`; yields the port.

    Users beside `pando` have a name, a protocol of authentication and one of privacy or none.
    """
    port = port or free_port()
    data, cache = folder / "data", folder / "cache"
    data.mkdir(exist_ok=True)
    cache.mkdir(exist_ok=True)
    lines = ("1.3.6.1.2.1.1.1.0|4|agent", *records)
    ordered = sorted(lines, key=lambda line: tuple(map(int, line.split("|")[0].split("."))))
    (data / "pdu.snmprec").write_text("\n".join(ordered) + "\n", encoding="utf-8")
    program = Path(sys.executable).with_name("snmpsim-command-responder")
    command = [
        str(program),
        f"--data-dir={data}",
        f"--cache-dir={cache}",
        f"--agent-udpv4-endpoint=127.0.0.1:{port}",
    ]
    for user, auth, priv in (("pando", "SHA", "AES"), *users):
        command += [f"--v3-user={user}", f"--v3-auth-key={AUTH_KEY}", f"--v3-auth-proto={auth}"]
        if priv:
            command += [f"--v3-priv-key={PRIV_KEY}", f"--v3-priv-proto={priv}"]
    if os.geteuid() == 0:
        command += ["--process-user=root", "--process-group=root"]
    with (folder / "agent.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_for_answer(port, process)
        yield port
    finally:
        process.kill()
        process.wait()


def _wait_for_answer(port: int, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + SECONDS
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.2)
        sock.connect(("127.0.0.1", port))
        while time.monotonic() < end and process.poll() is None:
            with contextlib.suppress(OSError):
                sock.send(_PING)
                if sock.recv(2_000):
                    return
    raise TimeoutError(f"the agent at port {port} does not answer")
