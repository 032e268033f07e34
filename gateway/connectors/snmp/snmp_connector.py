"""The SNMP connector: objects of an agent that are polled to readings, tables row by row."""

import asyncio
import re

from gateway.connectors.browsing import BrowseContext
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.polling import Poll, poll_until_lost
from gateway.connectors.reading import Reading
from gateway.connectors.record_columns import record_columns
from gateway.connectors.snmp.agent import Agent, Oid, text_of_oid
from gateway.connectors.snmp.oid_walk import SnmpBrowse, offer_objects
from gateway.connectors.snmp.snmp_options import SnmpEndpoint, SnmpSource

_OID = re.compile(r"\.?[0-2](\.\d{1,10}){1,127}", re.ASCII)


class SnmpConnector:
    """Serves one agent."""

    kind = "snmp"
    endpoint_options = SnmpEndpoint
    source_options = SnmpSource
    browse_options = SnmpBrowse

    async def run(self, context: ConnectorContext) -> None:
        """Poll the agent until it does not answer.

        Raises:
            ConnectionError: It does not answer, or refuses us.
        """
        agent = Agent(context.endpoint_as(SnmpEndpoint))
        polls = []
        for source in context.sources:
            try:
                polled = PolledObjects(source, agent)
            except ValueError as error:
                source.problem(str(error))
            else:
                polls.append(Poll(polled.options.interval, polled.read))
        try:
            await agent.open()
            # UDP has no connection that could be lost: requests find out.
            await poll_until_lost(context, polls, asyncio.Event().wait())
        finally:
            agent.close()

    async def browse(self, context: BrowseContext) -> None:
        """Offer what the agent has below an OID.

        Raises:
            ConnectionError: It does not answer, or refuses us.
        """
        agent = Agent(context.endpoint_as(SnmpEndpoint))
        try:
            await agent.open()
            await offer_objects(agent, context)
        finally:
            agent.close()


class PolledObjects:
    """A source, its objects and its columns of a table.

    Where a column reads `@index`, each row of the table is a row: OIDs that end in 0 are objects of
    their own, the same in all rows, and the others are columns of the table.

    Raises:
        ValueError: The FROM of a column is no OID; names the column.
    """

    def __init__(self, source: DeclaredSource, agent: Agent) -> None:
        self.options = source.options_as(SnmpSource)
        self._source = source
        self._agent = agent
        mapping = source.definition.mapping
        assert mapping is not None  # noqa: S101  (a declared source has one)
        is_table = any(column.path == "@index" for column in mapping.columns)
        oids = _oids_of(source)
        self._objects = {oid: text for oid, text in oids.items() if not is_table or oid[-1] == 0}
        self._columns = {oid: text for oid, text in oids.items() if oid not in self._objects}
        self._is_table = is_table

    async def read(self) -> list[Reading]:
        """Read all once; return a row, or one for each row of the table."""
        complain = self._source.problem
        found = await self._agent.get(list(self._objects), complain)
        values = {self._objects[oid]: value for oid, value in found.items()}
        if not self._is_table:
            return self._source.read_record(values) if values else []
        rows: dict[Oid, dict[str, object]] = {}
        for column, text in self._columns.items():
            for index, value in (await self._agent.column(column, complain)).items():
                rows.setdefault(index, dict(values))[text] = value
        return [
            reading
            for index, row in sorted(rows.items())
            for reading in self._source.read_record(row, index=text_of_oid(index))
        ]


def _oids_of(source: DeclaredSource) -> dict[Oid, str]:
    found: dict[Oid, str] = {}
    for name, text, _form in record_columns(source.definition):
        if _OID.fullmatch(text) is None:
            raise ValueError(
                f"column {name}: FROM {text!r:.60} is no OID, such as '1.3.6.1.2.1.1.3.0'"
            )
        oid = tuple(map(int, text.removeprefix(".").split(".")))
        if max(oid) >= 2**32:
            raise ValueError(f"column {name}: FROM {text!r:.60} has a number beyond 32 bits")
        if found.setdefault(oid, text) != text:
            raise ValueError(f"column {name}: FROM {text!r:.60} is {found[oid]!r:.60}, too")
    return found
