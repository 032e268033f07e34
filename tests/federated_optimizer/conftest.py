"""Golden cases: statements over the sample schema, and the plan texts they must give.

`pytest tests/federated_optimizer/laws -k golden --update-golden` rewrites the expected texts and
shows the difference; read it before committing it.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from federated_optimizer.network.topology import Topology, colocation_of
from streamsql.binder import BoundQuery
from tests.streamsql.from_text import bound_query, catalog_of

_AT_MANY = re.compile(r"at \d+ x ")
GOLDEN = Path(__file__).parent / "golden"
SCHEMA = GOLDEN / "schema.sql"


class _Text(str):
    """A string that YAML writes as a block."""

    __slots__ = ()


def _block(dumper: yaml.Dumper, text: _Text) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")


def _written(value: str) -> str:
    return _Text(value) if "\n" in value else value


class _Line(dict[str, Any]):
    """A mapping that YAML writes in a line."""


def _line(dumper: yaml.Dumper, mapping: _Line) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", mapping, flow_style=True)


class _Dumper(yaml.SafeDumper):
    """Writes equal facts as often as they are there."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


_Dumper.add_representer(_Text, _block)  # type: ignore[arg-type]
_Dumper.add_representer(_Line, _line)  # type: ignore[arg-type]


class Golden:
    """The sample schema, and the cases in a file."""

    def __init__(self, *, update: bool, show: Callable[[str], None]) -> None:
        self._update, self._show = update, show
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
        cases = self._cases(file)
        assert len(cases) >= least
        made = [outputs(case) for case in cases]
        if self._update:
            self._write(file, [{**case, **texts} for case, texts in zip(cases, made, strict=True)])
            return
        for case, texts in zip(cases, made, strict=True):
            for key, value in texts.items():
                assert value == case.get(key, "").rstrip("\n"), f"{case['name']}: {key}"

    def check_facts(self, file: str, planned: Callable[[str, Mapping[str, Any]], str]) -> None:
        """Compare the plans of every case, each under several facts, with what the file says.

        Args:
            file: Name below `golden/`.
            planned: From a statement and facts to the text of its plan.
        """
        cases = self._cases(file)
        made = [[planned(case["sql"], facts) for facts in case["when"]] for case in cases]
        if self._update:
            for case, texts in zip(cases, made, strict=True):
                for facts, text in zip(case["when"], texts, strict=True):
                    facts["plan"] = text
            self._write(file, cases)
            return
        for case, texts in zip(cases, made, strict=True):
            for facts, text in zip(case["when"], texts, strict=True):
                given = {key: value for key, value in facts.items() if key != "plan"}
                assert text == facts.get("plan", "").rstrip("\n"), f"{case['name']}: {given}"

    def plans_under_facts(self, files: Iterable[str]) -> dict[str, set[str]]:
        """Return the different plans by statement of some files.

        The same plan at another number of gateways or base sites is no other one.
        """
        found: dict[str, set[str]] = {}
        for case in (case for file in files for case in self._cases(file)):
            plans = {_AT_MANY.sub("at ", each["plan"].rstrip("\n")) for each in case["when"]}
            found.setdefault(case["sql"], set()).update(plans)
        return found

    @staticmethod
    def _cases(file: str) -> list[dict[str, Any]]:
        text = (GOLDEN / file).read_text(encoding="utf-8")
        found: list[dict[str, Any]] = yaml.load(text, Loader=yaml.CSafeLoader)
        return found

    def _write(self, file: str, cases: list[dict[str, Any]]) -> None:
        path = GOLDEN / file
        before = path.read_text(encoding="utf-8")
        written = [_laid_out(case) for case in cases]
        after = yaml.dump(written, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=99)
        path.write_text(after, encoding="utf-8")
        lines = (before.splitlines(), after.splitlines())
        for line in difflib.unified_diff(*lines, file, file, lineterm=""):
            self._show(line)


def _laid_out(value: Any) -> Any:
    """Return what YAML lays out as people read it: texts as blocks, facts in a line."""
    match value:
        case str():
            return _written(value)
        case list():
            return [_laid_out(each) for each in value]
        case dict():
            return {
                key: _Line(each) if isinstance(each, dict) else _laid_out(each)
                for key, each in value.items()
            }
        case _:
            return value


@pytest.fixture(scope="session")
def golden(request: pytest.FixtureRequest) -> Golden:
    """The golden cases."""
    config = request.config
    capture = config.pluginmanager.getplugin("capturemanager")

    def show(line: str) -> None:
        with capture.global_and_fixture_disabled():
            config.get_terminal_writer().line(line)

    return Golden(update=config.getoption("--update-golden"), show=show)
