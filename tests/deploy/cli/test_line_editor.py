"""The tab key of the shell."""

import contextlib

from deploy.cli.line_editor import TabCompleter
from deploy.session import LocalSession
from streamsql.syntax import parse_statement


def _all(completer: TabCompleter, word: str) -> list[str]:
    found: list[str] = []
    while (label := completer(word, len(found))) is not None:
        found.append(label)
    return found


def test_names_and_words_are_completed_as_they_were_begun() -> None:
    with contextlib.closing(LocalSession("reference", 1)) as session:
        session.execute(parse_statement("CREATE SOURCE seat (mid TEXT, weight DOUBLE)"))
        text = "select wei from seat"
        assert _all(TabCompleter(session.suggest, lambda: (text, 10)), "wei") == ["weight"]
        upper = "SELECT mid FROM seat EM"
        found = _all(TabCompleter(session.suggest, lambda: (upper, len(upper))), "EM")
        assert found == ["EMIT ON WINDOW CLOSE"]
        lower = "select mid from se"
        assert "seat" in _all(TabCompleter(session.suggest, lambda: (lower, len(lower))), "se")
