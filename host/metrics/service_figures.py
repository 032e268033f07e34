"""Figures that every service of a federation has: who it is, its connection, what failed."""

from collections.abc import Iterator

from host.metrics.families import Sample, counter, gauge
from host.metrics.process_figures import process_figures
from host.mqtt import MessageClient
from streamsql.algebra.user_functions import INSTALLED

INFO = gauge("pando_process_info", "Always 1; the labels name the process.")
CONNECTED = gauge("pando_connected", "Whether the process is connected to the broker.")
PENDING = gauge("pando_messages_pending", "Publishes that the broker has not acknowledged.")
BAD = counter("pando_bad_payloads_total", "Messages that could not be used (dead letters).")
FAILURES = counter("pando_function_failures_total", "Calls of functions of users that failed.")


def service_figures(
    federation: str, site: str, role: str, client: MessageClient, bad_payloads: int
) -> Iterator[Sample]:
    """Yield the figures of a process and its connection to the broker.

    Args:
        federation: Its name, first level of every topic.
        site: The service's own id.
        role: As in its state.
        client: Its connection.
        bad_payloads: Messages so far that could not be used.
    """
    yield from process_figures()
    yield INFO.at(1, federation=federation, site=site, role=role)
    yield CONNECTED.at(client.connected)
    yield PENDING.at(client.pending())
    yield BAD.at(bad_payloads)
    yield FAILURES.at(INSTALLED.failed)


def connection_problem(client: MessageClient) -> str:
    """Return why a service has no connection to the broker, or empty: its health."""
    if client.connected:
        return ""
    failure = client.failure
    if failure is None:
        return "not connected to the broker yet"
    return f"no connection to the broker: {failure.reason}"
