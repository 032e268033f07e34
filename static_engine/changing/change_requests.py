"""Changes of tables as they come from the coordinator: each done once, and answered."""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from host.mqtt import MessageClient
from host.mqtt.publishing import publish_or_warn
from streamsql.data.types import Row
from streamsql.errors import DeploymentError, FederationError, InternalError
from streamsql.wire.codec import encode_packed
from streamsql.wire.stored_tables.table_changes import TableChange, TableChanged
from streamsql.wire.topics import Topics, check_id

log = logging.getLogger(__name__)

MAX_WAITING = 100
_MAX_ANSWERS = 1_000
BEGIN_SECONDS = 15.0
"""A change that has waited for so long is refused: before it is done, the coordinator would report
its outcome as unknown (`coordinator.tables.table_change_requests`), and its author may retry."""
_LATE = 0.05


class Querying(Protocol):
    """Computes the rows of changes that have a query.

    Attributes:
        why: What the change in turn waits for, in words.
    """

    why: str

    def keep(self, change: str) -> None:
        """Discard what is known of all changes but this one."""
        ...

    async def rows(self, change: TableChange, seconds: float) -> tuple[Row, ...] | None:
        """Return the rows of a change; None: it is too early."""
        ...


Change = Callable[[TableChange], int]
InWorker = Callable[[Callable[[], None]], Awaitable[None]]


class ChangeRequests:
    """The changes that wait, and the answers to those that were done.

    The broker may deliver a request twice; the second one gets the answer to the first.

    Args:
        client: Sends the answers.
        topics: Of the federation.
        site: Our id.
        epoch: Of this incarnation. Requests to an earlier one are ignored: it may have done them.
        querying: Computes the rows of queries; None: changes with a query are refused.
        clock: Seconds, monotonic.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - each is one seam
        self,
        client: MessageClient,
        topics: Topics,
        site: str,
        epoch: int,
        querying: Querying | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._querying = querying
        self._clock = clock
        self._client = client
        self._topics = topics
        self._site = site
        self._epoch = epoch
        self._doing = ""  # the id of the change that the worker does
        self._waiting: deque[tuple[TableChange, float]] = deque()
        self._answers: OrderedDict[str, TableChanged] = OrderedDict()

    def take(self, change: TableChange) -> None:
        """Queue a request.

        Raises:
            WireError: Its id is none.
        """
        check_id(change.id)
        if change.epoch != self._epoch:
            log.warning("ignored a change of table %s: it is too old", change.definition.name)
        elif change.id in self._answers:
            self._publish(self._answers[change.id])
        elif len(self._waiting) >= MAX_WAITING:
            busy = DeploymentError(
                f"{MAX_WAITING} changes of tables already wait",
                hint="retry later",
                code="change_failed",
            )
            self._answer(_refusal(change, busy))
        elif change.id != self._doing and all(one.id != change.id for one, _ in self._waiting):
            self._waiting.append((change, self._clock()))
            # The worker may be busy with something else until after that.
            asyncio.get_running_loop().call_later(BEGIN_SECONDS + _LATE, self.give_up_late)

    async def work(self, change: Change, in_worker: InWorker) -> list[str]:
        """Do what waits, one after the other; return the names of the tables that (may) changed.

        What comes meanwhile waits for the next turn: queries see the tables in between.
        """
        changed = []
        for _ in range(len(self._waiting)):
            self.give_up_late()
            if not self._waiting:
                break
            request, since = self._waiting.popleft()
            self._doing = request.id
            if request.query is not None:
                queried = await self._queried(request, since)
                if queried is None:  # those behind it see what it makes of the table
                    self._doing = ""
                    self._waiting.appendleft((request, since))
                    break
                if isinstance(queried, TableChanged):
                    self._doing = ""
                    self._answer(queried)
                    continue
                request = queried
            answers: list[TableChanged] = []
            await in_worker(lambda r=request, a=answers: a.append(_done(change, r)))  # type: ignore[misc]
            self._doing = ""
            (answer,) = answers
            if answer.rows or answer.code == "no_answer":
                changed.append(request.definition.name)
            self._answer(answer)
        return changed

    async def _queried(
        self, request: TableChange, since: float
    ) -> TableChange | TableChanged | None:
        """Return a change with the rows of its query, or why there are none; None: too early."""
        if self._querying is None:
            return _refusal(request, DeploymentError("queries are not run here"))
        try:
            left = since + BEGIN_SECONDS - self._clock()
            rows = await self._querying.rows(request, left)
        except FederationError as error:
            return _refusal(request, error)
        if rows is None:
            return None
        waited = self._clock() - since
        if waited >= BEGIN_SECONDS:
            return _refusal(request, _too_late(request, waited))
        return msgspec.structs.replace(request, rows=rows, query=None)

    def give_up_late(self) -> None:
        """Refuse what has waited too long to be begun."""
        now = self._clock()
        while self._waiting and now - self._waiting[0][1] >= BEGIN_SECONDS:
            request, since = self._waiting.popleft()
            why = self._querying.why if self._querying and request.query is not None else ""
            self._answer(_refusal(request, _too_late(request, now - since, why)))
        if self._querying is not None:
            first = self._waiting[0][0].id if self._waiting else ""
            self._querying.keep(self._doing or first)

    def _answer(self, answer: TableChanged) -> None:
        self._answers[answer.id] = answer
        while len(self._answers) > _MAX_ANSWERS:
            self._answers.popitem(last=False)
        self._publish(answer)

    def _publish(self, answer: TableChanged) -> None:
        topic = self._topics.response(self._site, answer.id)
        payload = encode_packed(answer)
        publish_or_warn(self._client, topic, payload, otherwise="a reply is not sent")


def _too_late(request: TableChange, waited: float, why: str = "") -> DeploymentError:
    reason = f": {why}" if why else ""
    return DeploymentError(
        f"the static engine was busy for {waited:.0f} s{reason}; table {request.definition.name} "
        "has not changed",
        hint="try again",
        code="change_failed",
    )


def _done(change: Change, request: TableChange) -> TableChanged:
    try:
        return TableChanged(request.id, change(request))
    except FederationError as error:
        return _refusal(request, error)
    except Exception as error:
        log.exception("a defect interrupted a change of table %s", request.definition.name)
        return _refusal(request, InternalError(f"{type(error).__name__}: {error}"))


def _refusal(request: TableChange, error: FederationError) -> TableChanged:
    return TableChanged(request.id, 0, error.code, error.message, error.hint)
