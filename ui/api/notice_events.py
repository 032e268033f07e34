"""Alarms and displays as they change, as server-sent events.

What a display shows is put together here, in the order of each query and cut to the rows the
display takes, so that a screen in a corridor never gets more than it can show.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.coordinator_model import QueryInfo, Wanted
from streamsql.algebra.streams import Emit
from streamsql.catalog.notice_definitions import DisplayDefinition
from streamsql.errors import FederationError
from ui.api.objects import alarm_object, event_text, query_object, row_object

POLL_SECONDS = 0.25
HEARTBEATS = 40
"""Polls without a change after which the reader gets a beat."""
BEAT = event_text("beat", None)
"""An event, not a comment: pages cannot see comments, and a page that hears nothing is lost."""
MANY_ROWS = 20_000
MANY_LOOKS = 20
"""An answer of many rows takes long to sort: it is looked at every so many looks only."""


class NoticeEvents:
    """One reader's stream. State: what each display showed last, which is bounded by its rows.

    Args:
        coordinator: What is asked.
        alarms: Whether to tell about alarms.
        displays: Whether to tell about displays.
        only: The name of the one display of interest, or None for all.
    """

    def __init__(
        self,
        coordinator: CoordinatorApi,
        *,
        alarms: bool = True,
        displays: bool = True,
        only: str | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._alarms = alarms
        self._displays = displays
        self._only = only
        self._told: object = None
        self._shown: dict[str, object] = {}
        self._looks = 0

    async def events(self, closing: asyncio.Event) -> AsyncIterator[bytes]:
        """Yield events until the reader goes or the console closes."""
        quiet = 0
        while not closing.is_set():
            for event in self._news():
                quiet = 0
                yield event
            quiet += 1
            if quiet >= HEARTBEATS:
                quiet = 0
                yield BEAT
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await closing.wait()
            except TimeoutError:
                self._looks += 1

    def _news(self) -> Iterator[bytes]:
        if self._alarms:
            infos = self._coordinator.alarms()
            if infos != self._told:
                self._told = infos
                yield event_text("alarms", [alarm_object(info) for info in infos])
        if self._displays:
            yield from self._display_news()

    def _display_news(self) -> Iterator[bytes]:
        found = {d["name"]: d for d in display_objects(self._coordinator)}
        wanted = list(found) if self._only is None else [self._only]
        if self._only is None and not self._looks:  # whoever comes back forgets the others
            yield event_text("displays", wanted)
        for name in wanted:
            display = found.get(name)
            if display is None:
                continue
            mark = [_mark(query) for query in display["queries"]], display["title"]
            many = any(query["rows"] > MANY_ROWS for query in display["queries"])
            if self._shown.get(name) == mark or (
                many and name in self._shown and self._looks % MANY_LOOKS
            ):
                continue
            self._shown[name] = mark
            yield event_text("display", with_rows(self._coordinator, display))
        gone = [name for name in self._shown if name not in found]
        if self._only is not None and self._only not in found and not self._looks:
            gone.append(self._only)
        for name in gone:
            self._shown.pop(name, None)
            yield event_text("gone", {"name": name})


def _mark(query: dict[str, Any]) -> object:
    """Return what is other whenever an answer is."""
    return query["id"], query["status"], query["changes"], query["rows"], query["error"]


def display_objects(coordinator: CoordinatorApi) -> list[dict[str, Any]]:
    """Return the displays, in the order they were made, with their queries, oldest first."""
    queries: dict[str, list[QueryInfo]] = {}
    for query in coordinator.queries(wanted=Wanted(displayed=True)):
        queries.setdefault(query.display, []).append(query)
    return [
        {
            "name": shown.name,
            "title": shown.title or shown.name,
            "floor": shown.floor,
            "x": shown.x,
            "y": shown.y,
            "rows": shown.rows,
            "queries": [query_object(query) for query in queries.get(shown.name, ())],
        }
        for shown in coordinator.definitions()
        if isinstance(shown, DisplayDefinition)
    ]


def with_rows(coordinator: CoordinatorApi, display: dict[str, Any]) -> dict[str, Any]:
    """Return a display with the first rows of its answers, each in the order of its query."""
    answers = []
    for query in display["queries"]:
        try:
            relation = coordinator.relation(query["id"])
            schema = coordinator.query(query["id"]).schema
        except (KeyError, FederationError):
            continue  # stopped meanwhile, or may not be read any more
        is_stream = query["emit"] == Emit.STREAM
        first = relation[: -display["rows"] - 1 : -1] if is_stream else relation[: display["rows"]]
        answers.append(
            {**query, "total": len(relation), "first": [row_object(schema, row) for row in first]}
        )
    return {**display, "queries": answers}
