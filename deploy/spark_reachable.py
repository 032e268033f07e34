"""Connection to a Spark master by its address: does one come about?"""

import socket
from urllib.parse import urlsplit

from static_engine.spark.spark_masters import MasterKind, master_kind

SECONDS = 3.0
_PORTS = {MasterKind.KUBERNETES: 443, MasterKind.CONNECT: 15002}


def unreachable(master: str) -> dict[str, str]:
    """Return the addresses that take no connection, each with the reason.

    This machine and YARN, whose address is in its own files, have none.

    Raises:
        DeploymentError: It is no master of Spark's.
    """
    kind = master_kind(master)
    found: dict[str, str] = {}
    for host, port in _places(master, kind):
        try:
            with socket.create_connection((host, port), timeout=SECONDS):
                pass
        except OSError as error:
            found[f"{host}:{port}"] = str(error)
    return found


def _places(master: str, kind: MasterKind) -> list[tuple[str, int]]:
    if kind in (MasterKind.LOCAL, MasterKind.YARN):
        return []
    if kind is MasterKind.STANDALONE:
        pairs = (each.rsplit(":", 1) for each in master.removeprefix("spark://").split(","))
        return [(host, int(port)) for host, port in pairs]
    text = master.removeprefix("k8s://")
    url = urlsplit(text if "://" in text else f"https://{text}")
    port = url.port or (80 if url.scheme == "http" else _PORTS[kind])
    return [(url.hostname or "", port)]
