"""Who may connect, publish and subscribe."""

from __future__ import annotations

from typing import Protocol


class Access(Protocol):
    """Decides for the broker; called on every connect, publish and subscribe."""

    def may_connect(self, client_id: str, user: str | None, password: bytes | None) -> bool:
        """Check who it is."""
        ...

    def may_publish(self, client_id: str, user: str | None, topic: str) -> bool:
        """Check a topic name; also used for wills."""
        ...

    def may_subscribe(self, client_id: str, user: str | None, topic_filter: str) -> bool:
        """Check a plain filter."""
        ...


class Everyone:
    """Everybody on this machine may do everything, except to speak for the broker itself."""

    def may_connect(self, client_id: str, user: str | None, password: bytes | None) -> bool:  # noqa: ARG002
        """Let everybody in."""
        return True

    def may_publish(self, client_id: str, user: str | None, topic: str) -> bool:  # noqa: ARG002
        """Allow every topic but `$SYS`, which the broker alone writes."""
        return not topic.startswith("$SYS/")

    def may_subscribe(self, client_id: str, user: str | None, topic_filter: str) -> bool:  # noqa: ARG002
        """Allow every filter."""
        return True
