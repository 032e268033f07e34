"""Ports: which are free, and who holds one that is not."""

import os
import socket

import pytest

from broker.free_ports import HOST, first_outgoing, free_port
from deploy.local.probes import holder, is_free, require_free
from streamsql.errors import DeploymentError


def test_a_port_in_use_names_who_holds_it_and_another_one() -> None:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert not is_free(port)
        assert holder(port).startswith(f"pid {os.getpid()} (")
        with pytest.raises(DeploymentError) as caught:
            require_free(port, "--port")
    said = str(caught.value)
    assert f"port {port} is in use by pid {os.getpid()}" in said
    offered = int(said.rsplit(" ", 1)[1])
    assert is_free(offered)
    assert is_free(port)
    require_free(port, "--port")


def test_a_free_port_is_free() -> None:
    assert is_free(free_port())


def test_no_outgoing_connection_takes_a_port_before_its_server() -> None:
    ports = {free_port() for _ in range(20)}
    assert max(ports) < first_outgoing()
    assert len(ports) > 1


def test_nobody_holds_a_free_port() -> None:
    assert holder(free_port()) == "another process"
