"""What `pando up` tells its user: lines for people, or JSON lines for scripts."""

import json
import sys
import time
from typing import Any

from rich.console import Console
from rich.markup import escape

_COLOURS = ("cyan", "green", "magenta", "blue", "yellow", "bright_cyan", "bright_green", "white")


class Reporter:
    """Prints progress, service logs and the end.

    Args:
        form: "table" for people, "json" for one JSON object a line.
    """

    def __init__(self, form: str) -> None:
        self.json = form == "json"
        self._console = Console(highlight=False, soft_wrap=True)
        self._colours: dict[str, str] = {}
        self._start = time.monotonic()

    def event(self, event: str, message: str, **facts: Any) -> None:
        """Report a change of state; `facts` go into the JSON object."""
        seconds = round(time.monotonic() - self._start, 2)
        if self.json:
            self._line({"event": event, "message": message, "seconds": seconds, **facts})
        else:
            style = "bold red" if event in ("died", "error") else "bold"
            self._console.print(f"[dim]{seconds:6.1f}s[/] [{style}]{escape(message)}[/]")

    def log(self, service: str, line: str) -> None:
        """Pass on a line of a service's log, labelled."""
        if self.json:
            self._line({"event": "log", "service": service, "line": line})
            return
        colour = self._colours.setdefault(service, _COLOURS[len(self._colours) % len(_COLOURS)])
        self._console.print(f"[{colour}]{service:>9}[/] [dim]│[/] {escape(line)}")

    def ready(self, address: str, **facts: Any) -> None:
        """Say that the federation can be used, and where."""
        if self.json:
            seconds = round(time.monotonic() - self._start, 2)
            message = f"ready: open {address}"
            line = {"event": "ready", "ready": True, "console": address, "message": message}
            self._line({**line, "seconds": seconds, **facts})
            return
        self.event("ready", "the federation is ready")
        self._console.print(f"\n   Map      [bold underline]{address}/[/]")
        self._console.print(f"   Queries  [bold underline]{address}/queries[/]")
        self._console.print("   Stop     Ctrl-C\n")

    def _line(self, facts: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(facts, ensure_ascii=False) + "\n")
        sys.stdout.flush()
