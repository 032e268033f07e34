"""The questions that the broker asks about a client's rights."""

from __future__ import annotations

from typing import Protocol


class AccessControl(Protocol):
    """Decides on every connect, publish, subscribe and, for guarded sessions, delivery."""

    def client_id(self, given: str, user: str | None) -> str:
        """Return the id that a client gets which gave this one."""
        ...

    def may_connect(self, client_id: str, user: str | None, password: bytes | None) -> bool:
        """Check user and password; the id is the one of `client_id`."""
        ...

    def may_publish(self, client_id: str, user: str | None, topic: str) -> bool:
        """Check a topic name against the rights to write; also for wills."""
        ...

    def may_subscribe(self, client_id: str, user: str | None, topic_filter: str) -> bool:
        """Check that every topic a plain filter may match is allowed to be read."""
        ...

    def receives_all(self, client_id: str, user: str | None, topic_filter: str) -> bool:
        """Return whether deliveries under a granted filter need not be checked one by one."""
        ...

    def may_receive(self, client_id: str, user: str | None, topic: str) -> bool:
        """Check one delivery."""
        ...
