"""Golden cases: statements over the sample schema, and the plan texts they must give.

`pytest tests/federated_optimizer --update-golden` rewrites the expected texts; read the difference
before committing it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from federated_optimizer.network.topology import Topology, colocation_of
from streamsql.binder import BoundQuery
from tests.streamsql.from_text import bound_query, catalog_of

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = GOLDEN / "schema.sql"


class _Text(str):
    """A string that YAML writes as a block."""

    __slots__ = ()


def _block(dumper: yaml.Dumper, text: _Text) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")


def _written(value: str) -> str:
    return _Text(value) if "\n" in value else value


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(_Text, _block)  # type: ignore[arg-type]


class Golden:
    """The sample schema, and the cases in a file."""

    def __init__(self, *, update: bool) -> None:
        self._update = update
        self.catalog = catalog_of(SCHEMA.read_text(encoding="utf-8"), library=True)
        names = frozenset(definition.name for definition in self.catalog.sources)
        everywhere = dict.fromkeys(("gw-1", "gw-2", "gw-3"), names)
        colocation = colocation_of(self.catalog)
        self.one_base = Topology(everywhere, colocation=colocation)
        self.two_bases = Topology(everywhere, bases=("base", "base-2"), colocation=colocation)

    def bind(self, text: str) -> BoundQuery:
        """Return the bound query of a statement."""
        return bound_query(text, self.catalog)

    def check(
        self, file: str, least: int, outputs: Callable[[dict[str, Any]], dict[str, str]]
    ) -> None:
        """Compare what a function makes of every case with what the file says.

        Args:
            file: Name below `golden/`.
            least: How many cases there must be.
            outputs: From a case to the texts by key.
        """
        path = GOLDEN / file
        cases = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        assert len(cases) >= least
        made = [outputs(case) for case in cases]
        if self._update:
            written = [
                {key: _written(value) for key, value in {**case, **texts}.items()}
                for case, texts in zip(cases, made, strict=True)
            ]
            text = yaml.dump(written, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=99)
            path.write_text(text, encoding="utf-8")
            return
        for case, texts in zip(cases, made, strict=True):
            for key, value in texts.items():
                assert value == case.get(key, "").rstrip("\n"), f"{case['name']}: {key}"


@pytest.fixture(scope="session")
def golden(request: pytest.FixtureRequest) -> Golden:
    """The golden cases."""
    return Golden(update=request.config.getoption("--update-golden"))
