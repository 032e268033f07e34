"""A query's channels discard rows that end in closed windows."""

from collections.abc import Iterable

from stream_engine.exchange.channel_inbox import Inbox
from stream_engine.exchange.channel_outbox import Outbox
from stream_engine.operators.rows.operator import SessionRows, Sessions, WindowCloser
from streamsql.wire.channel_protocol import Forgotten
from streamsql.wire.closing_rules import closing_rules
from streamsql.wire.fragments import FragmentBundle

LOOK_ROWS = 1_000
"""Rows beyond twice those that were left last time, before all are checked again."""


class Forgetting:
    """Bounds the channels of one query at one site by its open windows.

    The receiving site discards when its channels have doubled, so that a row is checked about
    twice; later rows of a closed window are dropped. Senders are told when this site will know
    permanently which windows have closed (see `Forgotten`).

    Args:
        bundle: The whole plan.
        operators: Of the fragments here.
        inbox: The receiving ends.
        outbox: The sending ends.

    Attributes:
        senders: Sites that may discard.
    """

    def __init__(
        self, bundle: FragmentBundle, operators: Iterable[object], inbox: Inbox, outbox: Outbox
    ) -> None:
        self._rules = closing_rules(bundle)
        self._inbox = inbox
        self._outbox = outbox
        self._closing: list[WindowCloser] = []
        self._sessions: list[Sessions] = []
        for operator in operators:
            if isinstance(operator, WindowCloser):
                self._closing.append(operator)
                if operator.sessions is not None:
                    self._sessions.append(operator.sessions)
            elif isinstance(operator, SessionRows):
                self._sessions.append(operator)
        self._receives = bool(self._rules and self._closing and inbox.channels)
        self.senders = inbox.senders_of(self._rules)
        self._retracted = frozenset(p for p, rule in self._rules.items() if rule.keeps_rows)
        self._looked_at = 0
        self._left = 0

    def stepped(self) -> None:
        """Discard after a step, if worth while; rows that operators keep are retracted next."""
        if not self._receives:
            return
        rows = self._inbox.rows_of(self._rules)
        if rows <= 2 * self._left + LOOK_ROWS:
            return
        forgotten = self._closed()
        if forgotten.watermark is None or forgotten.watermark <= self._looked_at:
            return
        self._looked_at = forgotten.watermark
        self._inbox.forget(forgotten, self._retracted)
        self._left = self._inbox.rows_of(self._rules)

    def known(self) -> Forgotten:
        """Return what the senders need not remember once this site's state is saved."""
        return self._closed() if self._receives else Forgotten()

    def heard(self, watermark: int | None) -> None:
        """Note that a sender has discarded what closed by a watermark."""
        if watermark is not None:
            for closing in self._closing:
                closing.begin_after(watermark)

    def forget(self, destination: str, watermark: int, bounds: dict[str, int]) -> bool:
        """Discard at a sending end what its receiver has named; bounds of no rule are ignored.

        Returns:
            False if there is no such channel.
        """
        channel = self._outbox.channels.get(destination)
        if channel is None:
            return False
        rules = self._rules
        named = {p: (rules[p].column, bound) for p, bound in bounds.items() if p in rules}
        channel.forget(Forgotten(watermark, named))
        return True

    def _closed(self) -> Forgotten:
        marks = [closing.closed for closing in self._closing]
        least = min([mark for mark in marks if mark is not None], default=None)
        if least is None or None in marks:
            return Forgotten()
        starts = [operator.oldest() for operator in self._sessions]
        oldest = min([start for start in starts if start is not None], default=None)
        bounds = {p: (rule.column, rule.bound(least, oldest)) for p, rule in self._rules.items()}
        return Forgotten(least, bounds)
