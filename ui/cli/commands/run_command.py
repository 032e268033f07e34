"""Run a query on the federation and print its changes until told to stop."""

import queue
import re
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from streamsql.errors import DeploymentError, FederationError
from ui.cli.client import ConsoleClient
from ui.cli.printing import ChangePrinter, UpsertPrinter

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}
SETTLE_POLL = 0.15


@dataclass(frozen=True, slots=True)
class Until:
    """When to stop reading: seconds, a number of changes, or once settled."""

    seconds: float | None = None
    limit: int | None = None
    settled: bool = False


def seconds_of(text: str) -> float:
    """Return a duration such as `5s`, `500ms` or `2min` in seconds.

    Raises:
        DeploymentError: It is none.

    Examples:
        >>> seconds_of("500ms"), seconds_of("5s")
        (0.5, 5.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|)\s*", text)
    if match is None:
        raise DeploymentError(f"{text!r} is no duration", hint="write 5s, 500ms or 2min")
    return float(match[1]) * UNITS[match[2]]


def run_query(client: ConsoleClient, sql: str, name: str, until: Until, form: str) -> None:
    """Start a query, print its changes, and stop it at the end.

    Raises:
        FederationError: The statement is wrong, or the query fails.
    """
    # Looked at here first: the console would carry out whatever else it is.
    from streamsql.syntax import Query, Subscribe, parse_statement  # noqa: PLC0415  (keeps `pando --help` quick)

    if not isinstance(parse_statement(sql), Query | Subscribe):
        raise DeploymentError(
            "this is not a query",
            hint="write SELECT or SUBSCRIBE; run other statements with `pando run`",
        )
    body = {"text": sql, "name": name, "origin": "session"}
    result = client.post("/api/statements", body)[0]
    query = result["query"]
    for warning in result["warnings"]:
        sys.stderr.write(f"warning: {warning}\n")
    try:
        follow(client, query, until, form)
    finally:
        try:
            client.delete(f"/api/queries/{query['id']}")
        except FederationError:
            # It ended by itself; nothing is left to stop.
            return


def follow(client: ConsoleClient, query: dict[str, Any], until: Until, form: str) -> None:
    """Print a query's changes until the end that was asked for.

    Raises:
        FederationError: The query fails, or the console goes away.
    """
    names = [column["name"] for column in query["columns"]]
    by_key = bool(query.get("subscription", {}).get("key"))
    units = [column.get("unit", "") for column in query["columns"]]
    printer = (UpsertPrinter if by_key else ChangePrinter)(form, names, units)
    told = ""
    begin = time.monotonic()
    reader = _Reader(client, query["id"], whole=query.get("subscription", {}).get("snapshot", True))
    for event, value in reader.until(until, begin):
        if event in ("snapshot", "change"):
            for change in value["upserts"] if by_key else value["changes"]:
                printer.print(change)
                if until.limit is not None and printer.printed >= until.limit:
                    return
        elif event == "progress":
            printer.progress(value["up_to"])
        elif event == "refused":
            error = value["error"]
            raise DeploymentError(error["message"], hint=error["hint"], code=error["code"])
        elif event == "status":
            error = value.get("error") or ""
            if value.get("status") == "failed":
                raise DeploymentError(f"query {query['id']} failed: {error}")
            if error != told:
                sys.stderr.write(f"warning: {error}\n" if error else "")
                told = error


class _Reader:
    """Reads events in a thread, so that time limits hold while nothing comes."""

    def __init__(self, client: ConsoleClient, query_id: str, *, whole: bool) -> None:
        self._client = client
        self._id = query_id
        self._whole = whole
        self._events: queue.Queue[tuple[str, Any] | FederationError | None] = queue.Queue(10_000)
        self._thread = threading.Thread(target=self._read, daemon=True)

    def until(self, until: Until, begin: float) -> Any:
        """Yield events until time is up, the query has settled, or the stream ends.

        That the query has settled does not say that all of it has been read: so it is stopped then,
        and read to its end.
        """
        self._thread.start()
        settled_twice = 0
        begun, stopped = not self._whole, False
        while True:
            if until.seconds is not None and time.monotonic() - begin >= until.seconds:
                return
            left = SETTLE_POLL
            if until.seconds is not None:
                left = min(left, max(until.seconds - (time.monotonic() - begin), 0.0))
            try:
                item = self._events.get(timeout=max(left, 0.001))
            except queue.Empty:
                if until.settled and begun and not stopped:
                    settled_twice = settled_twice + 1 if self._is_settled() else 0
                    if settled_twice > 1:
                        self._client.delete(f"/api/queries/{self._id}")
                        stopped = True
                continue
            if item is None:
                return
            if isinstance(item, FederationError):
                raise item
            settled_twice, begun = 0, begun or item[0] == "snapshot"
            yield item

    def _is_settled(self) -> bool:
        shown = self._client.get(f"/api/queries/{self._id}")
        if shown["status"] == "failed":
            raise DeploymentError(f"query {self._id} failed: {shown['error']}")
        return bool(shown["settled"])

    def _read(self) -> None:
        reader = ConsoleClient(self._client.address)
        try:
            for item in reader.events(f"/api/queries/{self._id}/changes"):
                self._events.put(item)
            self._events.put(None)
        except FederationError as error:
            self._events.put(error)
        finally:
            reader.close()
