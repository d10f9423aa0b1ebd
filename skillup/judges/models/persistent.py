"""A model as one question is put to it: asked with patience, its answers accounted for."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from skillup.judges.models.account import Account
from skillup.judges.models.attempts import Attempts
from skillup.judges.models.errors_of_models import is_about_temperature
from skillup.judges.models.received import UnpromisedAnswerError, received

_STUMBLES = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, AssertionError)
"""What a client runs into that trusts an answer to be what the API promises."""


@dataclass(init=False)
class PersistentModel(WrapperModel):
    """Passes requests on to the wrapped model; made anew for each question."""

    def __init__(self, wrapped: Model, attempts: Attempts, *, takes_temperature: bool) -> None:
        super().__init__(wrapped)
        self.account = Account()
        self.attempts = attempts
        self.takes_temperature = takes_temperature
        """False: known to refuse it, from before or since this question."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The answer of the wrapped model. Raises ModelAPIError once patience is at its end."""

        async def request() -> ModelResponse:
            settings = model_settings if self.takes_temperature else _cool(model_settings)
            body = received()
            try:
                return await self.wrapped.request(messages, settings, model_request_parameters)
            except _STUMBLES as stumble:
                raise UnpromisedAnswerError(body.text()) from stumble
            except (UnexpectedModelBehavior, ModelAPIError) as error:
                # Their kinds are more than that: a status, no connection, a refusal, …
                if body.is_there and type(error) in (UnexpectedModelBehavior, ModelAPIError):
                    raise UnpromisedAnswerError(body.text()) from error
                raise

        try:
            response = await self.attempts.make(self.model_name, request)
        except ModelAPIError as error:
            if not (self.takes_temperature and is_about_temperature(error)):
                raise
            self.takes_temperature = False
            response = await self.attempts.make(self.model_name, request)
        self.account.add(response)
        return response


def _cool(settings: ModelSettings | None) -> ModelSettings | None:
    """Without a temperature."""
    if settings is None or "temperature" not in settings:
        return settings
    rest = settings.copy()
    del rest["temperature"]
    return rest
