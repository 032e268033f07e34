"""Figures of a static engine for Prometheus."""

from collections.abc import Iterator
from typing import Protocol

from host.metrics.families import Sample, counter, gauge
from host.metrics.service_figures import service_figures
from host.mqtt import MessageClient
from static_engine.refreshing.views import RefreshedViews
from static_engine.static_settings import StaticSettings
from streamsql.wire.site_messages import SiteRole

READY = gauge("pando_static_ready", "Whether the engine that was asked for has started.")
TABLES = gauge("pando_static_tables", "Tables that are watched for changes.")
QUERIES = gauge("pando_static_queries", "Queries with fragments here.")
EVALUATIONS = counter("pando_static_evaluations_total", "Evaluations of plans.")
DEFECTS = counter("pando_static_defects_total", "Turns that ended with a defect.")
SENT = counter("pando_static_batches_sent_total", "Batches of rows sent.")
VIEW_ROWS = gauge("pando_static_view_rows", "Rows of a view with REFRESH AT.")
VIEW_AT = gauge(
    "pando_static_view_refreshed_timestamp_seconds", "Last refresh, seconds since 1970 UTC."
)
VIEW_SECONDS = gauge("pando_static_view_refresh_seconds", "Duration of the last refresh.")


class Engine(Protocol):
    """The static engine as its figures need it."""

    settings: StaticSettings
    client: MessageClient
    views: RefreshedViews

    @property
    def is_ready(self) -> bool:
        """Whether the engine that was asked for has started."""

    @property
    def counters(self) -> dict[str, int]:
        """As in its state."""


def static_figures(engine: Engine) -> Iterator[Sample]:
    """Yield the figures of a static engine's process."""
    settings, counts = engine.settings, engine.counters
    yield from service_figures(
        settings.site, settings.site_id, SiteRole.STATIC, engine.client, counts["bad_payloads"]
    )
    yield READY.at(engine.is_ready)
    yield TABLES.at(counts["tables"])
    yield QUERIES.at(counts["queries"])
    yield EVALUATIONS.at(counts["evaluations"])
    yield DEFECTS.at(counts["defects"])
    yield SENT.at(counts["batches_sent"])
    for view in engine.views.states():
        yield VIEW_ROWS.at(view.rows, view=view.view)
        if view.last is not None:
            yield VIEW_AT.at(view.last / 1_000_000, view=view.view)
        if view.seconds is not None:
            yield VIEW_SECONDS.at(view.seconds, view=view.view)
