"""An SNMP agent (snmpsim) with a table of 20 rows that show another number when they are read."""

import os
import sys
from pathlib import Path

from benchmarks._device_faults.peers.peer import peer_arguments

ROWS = 20
COLUMN = "1.3.6.1.2.1.2.2.1.10"
VARIATION = Path(__file__).resolve().parent.parent / "snmp_variation"


def main() -> None:
    """Become the agent."""
    arguments = peer_arguments()
    data, cache = arguments.folder / "data", arguments.folder / "cache"
    cache.mkdir(exist_ok=True)
    lines = [
        "1.3.6.1.2.1.1.1.0|4|agent",
        *(f"{COLUMN}.{row}|2:numbered|0" for row in range(1, ROWS + 1)),
        "1.3.6.1.2.1.3.1.0|2|1",
    ]
    (data / "pdu.snmprec").write_text("\n".join(lines) + "\n", encoding="ascii")
    command = [
        str(Path(sys.executable).with_name("snmpsim-command-responder")),
        f"--data-dir={data}",
        f"--cache-dir={cache}",
        f"--variation-modules-dir={VARIATION}",
        "--logging-method=null",
        f"--agent-udpv4-endpoint=127.0.0.1:{arguments.port}",
    ]
    if os.geteuid() == 0:
        command += ["--process-user=root", "--process-group=root"]
    environment = {
        **os.environ,
        "PANDO_FAULTS_FOLDER": str(arguments.folder),
        "PANDO_FAULTS_COUNT": str(arguments.count),
    }
    os.execve(command[0], command, environment)  # noqa: S606 - our own program


if __name__ == "__main__":
    main()
