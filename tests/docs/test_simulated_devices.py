"""Simulated devices of docs/examples that cannot start; end_to_end/test_devices.py uses them."""

import socket
import subprocess
import sys

import pytest

from broker.free_ports import free_port
from tests.docs.markdown import ROOT

NAMES = ("mqtt", "modbus", "http")


@pytest.mark.parametrize("taken", NAMES)
def test_a_port_in_use_is_named_with_its_option(taken: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        words = [f"--{name}={port if name == taken else free_port()}" for name in NAMES]
        command = [sys.executable, "docs/examples/devices.py", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"devices: port {port} is in use" in done.stderr
    assert f"choose another port: --{taken} " in done.stderr
