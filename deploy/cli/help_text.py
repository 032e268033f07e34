"""How `--help` reads: examples line by line, the commands in the order one needs them."""

import inspect

import typer

FIRST = ("up", "doctor", "shell", "run", "explain", "simulate", "bench")
EPILOG = """\b
Examples:
  pando up                               start everything on this machine
  pando query run "SELECT * FROM Link"   see a stream's changes
  pando shell --local                    learn the language, nothing needed
"""
_AS_IT_IS = "\b\n"  # click neither joins nor breaks the lines of a paragraph that begins so


def arrange(app: typer.Typer) -> None:
    """Order an app's commands and keep the lines of its examples apart."""
    app.registered_commands.sort(key=lambda command: _place(command.name or _name(command)))
    app.info.epilog = EPILOG
    for group in (app, *(g.typer_instance for g in app.registered_groups if g.typer_instance)):
        for command in group.registered_commands:
            if command.callback is not None and command.help is None:
                command.help = help_of(inspect.getdoc(command.callback) or "")


def help_of(docstring: str) -> str:
    """Return a docstring with its examples, which end it, kept line by line."""
    text, word, examples = docstring.partition("\n\nExample")
    if not word:
        return docstring
    lines = [line for line in f"Example{examples}".splitlines() if line.strip()]
    return text + "\n\n" + _AS_IT_IS + "\n".join(lines)


def _place(name: str) -> int:
    return FIRST.index(name) if name in FIRST else len(FIRST)


def _name(command: typer.models.CommandInfo) -> str:
    return command.callback.__name__ if command.callback is not None else ""
