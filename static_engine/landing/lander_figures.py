"""Figures of a lander for Prometheus."""

from collections.abc import Iterator

from host.metrics.families import Sample, counter, gauge
from host.metrics.service_figures import connection_problem, service_figures
from static_engine.landing.lander import Lander
from streamsql.wire.site_messages import SiteRole

MESSAGES = counter("pando_landed_messages_total", "Messages on disk and acknowledged.")
BYTES = counter("pando_landed_bytes_total", "Bytes of their payloads.")
SEGMENTS = counter("pando_landed_segments_total", "Segments written.")
REFUSED = counter("pando_landing_refused_total", "Segments that could not be written at first.")
WAITING = gauge("pando_landing_waiting", "Messages that wait for their segment.")
LOST = counter(
    "pando_landing_lost_packs_total", "Packs that the broker lost and their gateway no longer has."
)
WRITES = gauge("pando_landing_writes", "Whether segments can be written.")


def lander_figures(lander: Lander) -> Iterator[Sample]:
    """Yield the figures of a lander's process."""
    settings, counts = lander.settings, lander.counts
    yield from service_figures(
        settings.site, settings.site_id, SiteRole.LANDER, lander.client, lander.dead_letters.count
    )
    yield MESSAGES.at(counts.messages)
    yield BYTES.at(counts.bytes)
    yield SEGMENTS.at(counts.segments)
    yield REFUSED.at(counts.refused)
    yield WAITING.at(lander.waiting)
    yield LOST.at(lander.missed.lost)
    yield WRITES.at(not lander.problem)


def lander_problem(lander: Lander) -> str:
    """Return what is wrong with a lander, or empty: its health."""
    return lander.problem or connection_problem(lander.client)
