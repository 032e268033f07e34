"""Imports paho without the 30 modules, 2 MB of a gateway's 34, that it only uses beside PySocks.

paho reads the proxies of the environment with `urllib.request` (HTTP, mail, temporary files,
archives), but connects through one only where PySocks is installed. Whoever else imports
`urllib.request` gets it.
"""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType

_PROXIES = "urllib.request"
_PAHO = "paho.mqtt.client"


def import_paho() -> None:
    """Import paho, once per process, before anything else does."""
    if _PAHO in sys.modules or _PROXIES in sys.modules or PathFinder.find_spec("socks"):
        return
    sys.modules[_PROXIES] = ModuleType(_PROXIES)
    try:
        import_module(_PAHO)
    finally:
        del sys.modules[_PROXIES]
