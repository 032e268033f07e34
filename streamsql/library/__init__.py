"""The views every installation has, as StreamSQL text that users can read and copy.

A view binds where the relations exist that its header names; until then it is only a text.
"""

from functools import lru_cache
from importlib import resources

from streamsql.catalog.definitions import ViewDefinition
from streamsql.errors import InternalError
from streamsql.syntax import CreateView, parse_statement


@lru_cache(maxsize=1)
def library_views() -> tuple[ViewDefinition, ...]:
    """Return the library's views in the order of their names.

    Raises:
        InternalError: A file of the library does not hold exactly one view of its own name.
    """
    files = [f for f in resources.files(__package__).iterdir() if f.name.endswith(".sql")]
    return tuple(
        _definition(file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))
        for file in sorted(files, key=lambda file: file.name)
    )


def _definition(name: str, text: str) -> ViewDefinition:
    statement = parse_statement(text)
    if not isinstance(statement, CreateView) or statement.name.text != name:
        raise InternalError(f"the library file {name}.sql does not create the view {name}")
    return ViewDefinition(
        name=name,
        query=statement.query.text,
        columns=tuple(column.text for column in statement.columns),
        recursive=statement.recursive,
        text=text.strip(),
        library=True,
    )
