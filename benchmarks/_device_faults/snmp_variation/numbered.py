"""A variation module of snmpsim: each object shows the next number when it is read."""

import os
from pathlib import Path
from typing import Any

from pyasn1.type.univ import Integer

from benchmarks._device_faults.peers.peer import PeerArguments, Served

_FOLDER = Path(os.environ["PANDO_FAULTS_FOLDER"])
_COUNT = int(os.environ["PANDO_FAULTS_COUNT"])
_SERVED = Served(PeerArguments(0, 0, _FOLDER, _COUNT, 1.0))


def init(**_context: Any) -> None:
    """Nothing is to be prepared; snmpsim calls it."""


def variate(oid: Any, tag: str, _value: Any, **context: Any) -> tuple[Any, str, Any]:
    """Return the next number, for the row of the table that is read."""
    if context["setFlag"] or not (context["nextFlag"] or context["exactMatch"]):
        return context["origOid"], tag, context["errorStatus"]
    return oid, tag, Integer(_SERVED.one(int(tuple(oid)[-1])))


def shutdown(**_context: Any) -> None:
    """Nothing is to be ended; snmpsim calls it."""
