"""The tab key in `pando shell`: completes words of the grammar and names of the catalog.

Only the line being typed is known; names of relations on earlier lines of a statement are not.
"""

from collections.abc import Callable, Sequence

Suggest = Callable[[str, int], Sequence[str]]
"""From a text and a place in it to what may stand there."""


class TabCompleter:
    """What the terminal's line editor asks: candidate number n for the word before the cursor."""

    def __init__(self, suggest: Suggest, line: Callable[[], tuple[str, int]]) -> None:
        self._suggest = suggest
        self._line = line
        self._found: list[str] = []

    def __call__(self, word: str, number: int) -> str | None:
        """Return a candidate, or None behind the last one."""
        if number == 0:
            text, place = self._line()
            self._found = [_in_case(label, word) for label in self._suggest(text, place)]
        return self._found[number] if number < len(self._found) else None


def _in_case(label: str, word: str) -> str:
    """Keep what was typed in lower case in lower case."""
    return label.lower() if word and word.islower() else label


def complete_with_tab(suggest: Suggest) -> None:
    """Let the tab key complete, where the terminal has a line editor."""
    try:
        import readline  # noqa: PLC0415
    except ImportError:
        return
    readline.set_completer_delims(" \t\n,()[].;=<>+-*/%|")
    readline.set_completer(
        TabCompleter(suggest, lambda: (readline.get_line_buffer(), readline.get_endidx()))
    )
    readline.parse_and_bind("tab: complete")
