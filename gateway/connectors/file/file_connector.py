"""The connector file: looks into a folder at intervals, and remembers how far files were read."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.file.file_options import Each, Encoding, FileEndpoint, FileSource
from gateway.connectors.file.folder import Folder, News
from gateway.connectors.own_thread import OwnThread
from gateway.connectors.reading import Memory, Reading
from gateway.connectors.turns import Turn
from streamsql.mapping.source_mapping import PayloadFormat


class FileConnector:
    """Reads what is appended to files."""

    kind = "file"
    endpoint_options: type[msgspec.Struct] = FileEndpoint
    source_options: type[msgspec.Struct] = FileSource

    async def run(self, context: ConnectorContext) -> None:
        """Emit new lines and files until cancelled.

        Raises:
            ConnectionError: The folder cannot be read.
        """
        folder = Path(context.endpoint_as(FileEndpoint).folder)
        looks = _Looks(context)
        tasks = [asyncio.create_task(looks.follow(source, folder)) for source in context.sources]
        try:
            # Not a TaskGroup: what goes wrong is to be shown as it is.
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            looks.thread.end(lambda: None)


class _Looks:
    """The looks into one folder."""

    def __init__(self, context: ConnectorContext) -> None:
        self._context = context
        self._memory: Memory = dict(context.memory or {})
        self.thread = OwnThread(f"file {context.endpoint_name}")

    async def follow(self, source: DeclaredSource, path: Path) -> None:
        """Read a source's files again and again."""
        options = source.options_as(FileSource)
        mapping = source.definition.mapping
        is_csv = mapping is not None and mapping.format == PayloadFormat.CSV and mapping.header
        has_header = is_csv and options.each == Each.LINE
        known = self._memory.get(source.name)
        folder = Folder(path, options, has_header=has_header, memory=known)
        while True:
            news = folder.news()
            while (found := await self.thread.run(partial(_next, news))) is not None:
                await self._take(source, options, folder, found)
            await asyncio.sleep(options.interval)

    async def _take(
        self, source: DeclaredSource, options: FileSource, folder: Folder, news: News
    ) -> None:
        for problem in news.problems:
            source.problem(problem)
        for note in news.notes:
            self._context.note(note)
        levels = folder.facts(news.name)
        readings: list[Reading] = []
        turn = Turn()
        for payload in news.payloads:
            content = payload
            if options.encoding != Encoding.UTF_8:
                content = payload.decode(options.encoding, errors="replace").encode()
            readings += await source.read_aside(content, levels, file=news.name)
            await turn.or_wait()
        self._memory[source.name] = folder.to_remember()
        if readings:
            self._context.remember(dict(self._memory))
            self._context.emit(readings)
            await self._context.kept()


def _next(news: Iterator[News]) -> News | None:
    return next(news, None)
