"""Keeps a site's state on disk, and brings it back after a crash.

Every event is in the journal before a step works on it, so whatever others have seen of it will be
known again. Snapshots are taken between two steps and written by another thread; they keep the
journal short. A site that cannot write goes on, and says so.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from gateway.gateway_settings import SnapshotSettings
from gateway.state.state_files import Loaded, StateFiles
from gateway.state.state_losses import Loss, SavedLosses, StateLosses, decode_losses
from host.clocks import Clock
from host.heartbeats import TRUST_SECONDS
from stream_engine.site.step_result import Forget
from stream_engine.snapshot.recorded_site import RecordedSite
from stream_engine.snapshot.restored import Restored
from streamsql.errors import FederationError
from streamsql.wire.messages import QueryProblem

log = logging.getLogger(__name__)

SHARE = 20
"""A snapshot is taken at most every so many times as long as the last one took."""
SHORTEST = 1.0
REPEAT_SECONDS = 10.0
FIND_SECONDS = 5.0
"""How long after the first connect the broker tells what it has retained."""


class StateKeeper:
    """Snapshots and the journal of one site.

    Args:
        engine: The site; nothing but its sources is declared yet.
        folder: Where the files go.
        settings: How often, how large.
        clock: The site's time.
        host_state: Returns plain values to keep with a snapshot.
        say: Publishes what is wrong with a query, or that nothing is any more.
        hears: Returns the queries that read what others publish to whoever is there, and keep
            nothing of; None where nothing is read so.
        is_whole: Whether this site has all else that was published while it was away, or has said
            what it lacks.
        elapsed: Seconds of a clock that nobody sets.
        told: Is called once, when it has been said what restarts have lost.

    Attributes:
        losses: What the last restart has lost.
    """

    def __init__(  # noqa: PLR0913  (each is one seam)
        self,
        engine: RecordedSite,
        folder: Path,
        settings: SnapshotSettings,
        clock: Clock,
        *,
        host_state: Callable[[], Any],
        say: Callable[[str, QueryProblem | None], None],
        hears: Callable[[], Iterable[str]] | None = None,
        is_whole: Callable[[], bool] = lambda: True,
        elapsed: Callable[[], float] = time.monotonic,
        told: Callable[[], None] = lambda: None,
    ) -> None:
        self.engine = engine
        self.files = StateFiles(folder, settings.max_bytes)
        self.losses = StateLosses()
        self._settings = settings
        self._clock = clock
        self._host_state = host_state
        self._say = say
        self._hears = hears
        self._is_whole = is_whole
        self._elapsed = elapsed
        self._on_told = told
        self._is_told = False
        self._due = self._earliest = elapsed()
        self._saved_changes = -1
        self._unsavable = ""
        self._untold: set[str] = set()
        self._writing: asyncio.Task[None] | None = None
        self._connected_at: float | None = None
        self._say_at = float("-inf")
        self._restored: set[str] = set()
        self._saved_losses = b""

    @property
    def problem(self) -> str:
        """Reason why the state cannot be saved, or empty."""
        return self.files.problem or self._unsavable

    @property
    def holds_all(self) -> bool:
        """Whether every event is on disk, where events are kept at all."""
        return not self._settings.keep or self.files.holds_all

    def is_untold(self, query: str) -> bool:
        """Whether a query may miss something that has not been said since the restart."""
        if query in self._untold:
            return True
        if self._is_told:
            return False
        unheard = self._hears is not None and self.losses.away_since
        return self.losses.concerns(query) or bool(unheard and query in self._unheard())

    def _unheard(self) -> list[str]:
        return [] if self._hears is None else sorted(self._hears())

    def cut_off(self, since: int) -> None:
        """Let the next life know since when this one has not heard all, in microseconds."""
        if self._settings.keep and not self.losses.away_since:
            self.losses.away_since = since
            self._save_losses()

    def missed(self, queries: Iterable[str], lost: Loss) -> None:
        """Note that queries miss something that others have published and that will not come."""
        found = sorted(queries)
        self.losses.missed(found, lost)
        self._untold |= set(found)
        self._say_at = float("-inf")

    def withdraw(self, origin: str) -> None:
        """Note that what a loss names has come after all; see `Loss.origin`."""
        self.losses.withdraw(origin)
        self._say_at = float("-inf")

    def restore(self) -> Restored:
        """Bring the site where it was, and begin to keep a journal."""
        if not self._settings.keep:
            return Restored()
        now, began = self._clock(), self._elapsed()
        loaded = self.files.load()
        damage = loaded.damage
        try:
            restored = self.engine.restore(loaded.snapshot, loaded.records, now)
        except FederationError as error:
            damage, restored = error.message, Restored()
        if damage:
            damage = f"the site's snapshot cannot be used: {damage}"
            log.warning("%s; set aside as snapshot.broken", damage)
            self.files.set_aside()
        cut = loaded.cut or restored.cut
        self.losses = StateLosses.of(restored, now, cut, damage, self._lost_before(now))
        self.losses.find(self.engine)
        self._restored = {site for _query, site in self.engine.senders()}
        if self._hears is not None and not self.losses.away_since:
            self.losses.away_since = restored.now
        self._save_losses()
        self._report(loaded, restored, now, self._elapsed() - began)
        self.files.next_journal()
        self.engine.record = self.files.append
        self.engine.unrecorded = self.files.cut
        return restored

    def _lost_before(self, now: int) -> SavedLosses | None:
        """Return what former restarts have lost, as far as it is known."""
        try:
            return decode_losses(self.files.losses())
        except (OSError, FederationError) as error:
            log.warning("the losses of earlier restarts are unknown: %s", error)
            unknown = Loss(None, now, "the record of losses of earlier restarts is damaged")
            return SavedLosses(general=(unknown,))

    def _save_losses(self) -> None:
        """Let the next life know what is lost, if that is anything new."""
        content = self.losses.saved()
        if content != self._saved_losses and self.files.save_losses(content):
            self._saved_losses = content

    def _report(self, loaded: Loaded, restored: Restored, now: int, took: float) -> None:
        if loaded.snapshot is None and not loaded.records:
            return
        log.info(
            "state of %.3f s ago restored in %.0f ms: %d queries, %d records after the snapshot",
            (now - restored.now) / 1_000_000,
            took * 1_000,
            len(self.engine.queries),
            len(loaded.records),
        )
        for loss in self.losses.general:
            log.warning("%s", loss)
        for complaint in [f"{q}: {why}" for q, (_, why) in restored.unsaved.items()]:
            log.warning("query %s restarts without its state", complaint)
        for complaint in restored.complaints[:10]:
            log.warning("while the journal was read: %s", complaint)

    def stepped(self, *, connected: bool) -> None:
        """Take a snapshot if it is time; call it right after each step."""
        now = self._elapsed()
        self._look_around(now, connected=connected)
        if not self._settings.keep and now >= self._due:
            self._due = now + self._settings.seconds  # nothing can be lost that would be kept
            self.engine.kept(self.engine.forgettable())
        if not self._settings.keep or self._writing is not None or now < self._earliest:
            return
        if now < self._due and not self.files.wants_snapshot:
            return
        if self.engine.changes == self._saved_changes and not self.files.wants_snapshot:
            self._due = now + self._settings.seconds
            return
        forgettable = self.engine.forgettable()
        taken = self._take()
        took = self._elapsed() - now
        self._earliest = now + max(SHORTEST, took * SHARE)
        self._due = now + max(self._settings.seconds, took * SHARE)
        if taken is not None:
            self._writing = asyncio.get_running_loop().create_task(self._write(*taken, forgettable))

    async def stop(self) -> None:
        """Save the state once more: a clean stop loses nothing."""
        if not self._settings.keep:
            return
        if self._writing is not None:
            await self._writing
        if not self.engine.is_at_rest:
            self.engine.step(self._clock())  # what it sends is sent again by the next life
        taken = self._take()
        if taken is not None:
            self.files.save(*taken)
        self.files.close()

    def _take(self) -> tuple[bytes, int] | None:
        """Return a snapshot and the journal that begins with it, or None if there is none now."""
        if not self.engine.is_at_rest:
            return None
        changes = self.engine.changes
        try:
            content = self.engine.snapshot(self._host_state())
        except FederationError as error:
            if self._unsavable != error.message:
                log.warning("the state of this site cannot be saved: %s", error.message)
            self._unsavable = error.message
            return None
        self._unsavable = ""
        generation = self.files.next_journal()
        if generation is None:
            return None
        self._saved_changes = changes
        return content, generation

    async def _write(self, content: bytes, generation: int, forgettable: Sequence[Forget]) -> None:
        try:
            if await asyncio.to_thread(self.files.save, content, generation):
                self.files.count_again()
                self.engine.kept(forgettable)
            else:
                self._saved_changes = -1
        finally:
            self._writing = None

    def _look_around(self, now: float, *, connected: bool) -> None:
        """Give up sites that do not come back, and say what is lost, while there is a broker."""
        if not connected:
            return
        if self._connected_at is None:
            self._connected_at = now
        since = now - self._connected_at
        if since < FIND_SECONDS:
            self.losses.find(self.engine)
        else:
            self.losses.all_found(self.engine)
        if self._restored and since >= TRUST_SECONDS:
            self._give_up()
        if since >= 1 and now - self._say_at >= REPEAT_SECONDS:
            self._say_at = now
            if self.losses.away_since and not self._is_told:
                reason = "this site was offline while others reported"
                away = Loss(self.losses.away_since, self._clock(), reason)
                self.losses.missed(self._unheard(), away)
            if self._is_whole():
                self.losses.away_since = 0
            for query, problem in self.losses.due(self.engine, self._clock()):
                self._say(query, problem)
            self._untold.clear()
            if self._settings.keep:
                self._save_losses()
            if not self._is_told:
                self._is_told = True
                self._on_told()

    def _give_up(self) -> None:
        """Retract what sites have sent to the earlier life and nobody has repeated since."""
        senders = self.engine.senders()
        waiting = self.engine.unsynchronised()
        answered = {site for query, site in senders if (query, site) not in waiting}
        for site in sorted({site for _, site in senders} & self._restored - answered):
            log.warning("site %s has not come back: its rows leave every result", site)
            self.engine.site_lost(site)
        self._restored = set()
