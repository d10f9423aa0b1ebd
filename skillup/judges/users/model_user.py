"""The user, played by a model: each message is a question of its own, with all that was said."""

from __future__ import annotations

from skillup.judges.models.question import AskModel, ModelAnswer, ModelQuestion
from skillup.judges.users.moves import as_message, form_of
from skillup.judges.users.prompt import next_text, part_text
from skillup.schema.judge import JudgeModel
from skillup.schema.record import SimulatorInfo, TurnError
from skillup.trial.simulator import SimulatorMessage, SimulatorPart


class ModelUser:
    """:class:`~skillup.trial.simulator.UserSimulator`."""

    def __init__(self, asker: AskModel, model: JudgeModel, sample: int) -> None:
        """`sample` tells trials of the same case apart: each has a user of its own, from 0."""
        self._asker = asker
        self._model = model
        self._sample = sample

    async def speak(self, part: SimulatorPart) -> SimulatorMessage:
        """The user's next message."""
        answer = await self._asker.ask(
            ModelQuestion(
                model=self._model,
                system=part_text(part),
                prompt=next_text(part),
                answer=form_of(part.may_stop),
                sample=self._sample,
            )
        )
        info = _info(answer)
        if answer.value is None:
            message = f"the simulated user: {answer.error}"
            return SimulatorMessage(info=info, error=TurnError(kind="judge", message=message))
        said = as_message(answer.value)
        return SimulatorMessage(said.text, said.stop, said.reason, info)


def _info(answer: ModelAnswer) -> SimulatorInfo:
    if answer.cached:
        return SimulatorInfo(model=answer.model, cached=True, cost_usd=0.0)
    return SimulatorInfo(usage=answer.usage, cost_usd=answer.cost_usd, model=answer.model)
