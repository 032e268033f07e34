"""Reports of `pando up`: lines for people, or JSON lines for scripts."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from rich.markup import escape

from ui.cli.printing import Terminal

_COLOURS = ("cyan", "green", "magenta", "blue", "yellow", "bright_cyan", "bright_green", "white")


class Reporter:
    """Prints progress, service logs and the end.

    Args:
        form: "table" for people, "json" for one JSON object a line.

    Attributes:
        gone: Whether the reader of our output has gone (a closed pipe or terminal).
    """

    def __init__(self, form: str) -> None:
        self.json = form == "json"
        self._console = Terminal(highlight=False, soft_wrap=True)
        self._colours: dict[str, str] = {}
        self._start = time.monotonic()
        self.gone = False

    def event(self, event: str, message: str, **facts: Any) -> None:
        """Report a change of state; `facts` go into the JSON object."""
        seconds = round(time.monotonic() - self._start, 2)
        if self.json:
            self._line({"event": event, "message": message, "seconds": seconds, **facts})
        else:
            style = "bold red" if event == "died" else "bold"
            self._print(f"[dim]{seconds:6.1f}s[/] [{style}]{escape(message)}[/]")

    def error(self, message: str, **facts: Any) -> None:
        """Say on standard error why the federation ends; with json also as an event."""
        if self.json:
            self.event("error", message, **facts)
        with contextlib.suppress(OSError):
            sys.stderr.write(f"error: {message}\n")

    def log(self, service: str, line: str) -> None:
        """Pass on a line of a service's log, labelled."""
        if self.json:
            self._line({"event": "log", "service": service, "line": line})
            return
        colour = self._colours.setdefault(service, _COLOURS[len(self._colours) % len(_COLOURS)])
        self._print(f"[{colour}]{service:>9}[/] [dim]│[/] {escape(line)}")

    def ready(self, address: str, **facts: Any) -> None:
        """Say that the federation can be used, and where."""
        if self.json:
            seconds = round(time.monotonic() - self._start, 2)
            message = f"ready: open {address}"
            line = {"event": "ready", "ready": True, "console": address, "message": message}
            self._line({**line, "seconds": seconds, **facts})
            return
        self.event("ready", "the federation is ready")
        self._print(f"\n   Map      [bold underline]{address}/[/]")
        self._print(f"   Queries  [bold underline]{address}/queries[/]")
        self._print("   Stop     Ctrl-C\n")

    def _line(self, facts: dict[str, Any]) -> None:
        self._print_by(lambda: sys.stdout.write(json.dumps(facts) + "\n"))

    def _print(self, text: str) -> None:
        self._print_by(lambda: self._console.print(text))

    def _print_by(self, write: Callable[[], object]) -> None:
        if self.gone:
            return
        try:
            write()
            sys.stdout.flush()
        except OSError:
            # Nobody reads any more; whoever runs the federation stops it.
            self.gone = True
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
