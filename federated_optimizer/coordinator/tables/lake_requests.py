"""Requests about the lake: the static engine, which alone works on it, answers them."""

import secrets

import msgspec
from typing_extensions import override

from federated_optimizer.coordinator.contract.lake_model import LakeApi
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.tables.awaited_answers import AwaitedAnswers
from streamsql.errors import DeploymentError
from streamsql.wire.stored_tables.lake_messages import LakeAnswer, LakeRequest, LakeTask

MAX_WAITING = 50
_QUESTIONS = (LakeTask.STATUS, LakeTask.JOBS, LakeTask.SAMPLE, LakeTask.STORED)
SECONDS = 20.0
"""Less than a terminal waits for the console (`ui.cli.client`)."""


class LakeRequests(LakeApi):
    """Sends requests and waits for the answers."""

    def __init__(self, shared: SharedParts) -> None:
        self._shared = shared
        self._static = shared.settings.static
        self._answers: AwaitedAnswers[LakeAnswer] = AwaitedAnswers(
            shared, MAX_WAITING, "requests about the lake", "lake_busy"
        )

    @override
    async def ask(self, request: LakeRequest) -> LakeAnswer:
        number = secrets.token_hex(8)

        def send(epoch: int) -> None:
            asked = msgspec.structs.replace(request, id=number, epoch=epoch)
            self._shared.deployment.ask_lake(self._static, asked)

        answer = await self._answers.ask(number, send, SECONDS)
        if answer is None:
            raise DeploymentError(
                f"the static engine did not answer within {SECONDS:g} s, or it stopped",
                hint="try again"
                if request.task in _QUESTIONS
                else "try again; pando lake status lists the jobs that were begun",
                code="no_answer",
            )
        if answer.code:
            raise DeploymentError(answer.message, hint=answer.hint, code=answer.code)
        return answer

    def waits_for(self, request: str) -> bool:
        """Whether somebody waits for the answer to a request."""
        return self._answers.waits_for(request)

    def heard(self, answer: LakeAnswer) -> None:
        """Take an answer."""
        self._answers.heard(answer.id, answer)
