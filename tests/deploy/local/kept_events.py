"""A reporter whose events tests read."""

from typing import Any

from typing_extensions import override

from deploy.local.up_reports import Reporter


class KeptEvents(Reporter):
    """Keeps events instead of printing them."""

    def __init__(self) -> None:
        super().__init__("json")
        self.events: list[dict[str, Any]] = []

    @override
    def _line(self, facts: dict[str, Any]) -> None:
        self.events.append(facts)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind, oldest first."""
        return [event for event in self.events if event["event"] == kind]
