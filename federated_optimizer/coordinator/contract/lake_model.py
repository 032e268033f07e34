"""The lake as the console sees it: one request, one answer."""

from typing import Protocol

from streamsql.wire.stored_tables.lake_messages import LakeAnswer, LakeRequest


class LakeApi(Protocol):
    """The lake of a federation; the static engine answers."""

    async def ask(self, request: LakeRequest) -> LakeAnswer:
        """Return the answer to a request; its id and epoch are set here.

        Raises:
            FederationError: It is refused, or the static engine is not there or does not answer.
        """
        ...
