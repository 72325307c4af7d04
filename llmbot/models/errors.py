"""What can go wrong between llmbot and a model.

`texts.py` turns each into a sentence for the user. `str()` of an error is for the operator's
log: it names the cause and holds neither an API key nor anybody's text.
"""

from __future__ import annotations

import logging


class ModelError(Exception):
    """A model gave no usable answer.

    `log_level` is how much the operator needs to know of it; `is_set_up_wrong` tells that it
    stays until somebody changes the set-up, so that one line in the log is enough.
    """

    log_level = logging.WARNING
    is_set_up_wrong = False


class NoModelError(ModelError):
    """No model is configured, or its name is not `provider/model`."""

    is_set_up_wrong = True

    def __init__(self, setting: str) -> None:
        super().__init__(f"the setting {setting} does not name a model as provider/model")
        self.setting = setting


class UnknownProviderError(ModelError):
    """The model's provider is not in the `providers` setting."""

    is_set_up_wrong = True

    def __init__(self, provider: str) -> None:
        super().__init__(f"the provider {provider!r} is not in the setting providers")
        self.provider = provider


class MissingKeyError(ModelError):
    """The environment variable with the provider's API key is not set, or not to a key."""

    is_set_up_wrong = True

    def __init__(self, provider: str, variable: str) -> None:
        super().__init__(
            f"the environment variable {variable} with the key of {provider!r} is not set"
        )
        self.provider = provider
        self.variable = variable


class KeyRefusedError(ModelError):
    """The provider does not accept the API key (HTTP 401 or 403)."""

    def __init__(self, provider: str, status: int) -> None:
        super().__init__(f"{provider!r} refuses the API key (HTTP {status})")
        self.provider = provider


class UnknownModelError(ModelError):
    """The provider does not know the model (HTTP 404)."""

    def __init__(self, provider: str, model: str) -> None:
        super().__init__(f"{provider!r} does not know the model {model!r} (HTTP 404)")
        self.provider = provider
        self.model = model


class RequestRefusedError(ModelError):
    """The provider does not accept the request (another HTTP 4xx)."""

    def __init__(self, provider: str, status: int) -> None:
        super().__init__(f"{provider!r} does not accept the request (HTTP {status})")
        self.provider = provider
        self.status = status


class BusyError(ModelError):
    """The provider is overloaded or cannot be reached, also after retries."""

    def __init__(self, provider: str, cause: str) -> None:
        super().__init__(f"{provider!r} is busy or out of reach ({cause})")
        self.provider = provider
        self.cause = cause


class TimedOutError(ModelError):
    """No answer came within the `timeout` setting."""

    def __init__(self, provider: str, seconds: float) -> None:
        super().__init__(f"{provider!r} gave no answer within {seconds:g} s")
        self.provider = provider
        self.seconds = seconds


class ContentRefusedError(ModelError):
    """The model or its provider refuses the content."""

    log_level = logging.INFO

    def __init__(self, provider: str) -> None:
        super().__init__(f"{provider!r} refuses the content")


class DrawingRefusedError(ContentRefusedError):
    """The model or its provider refuses to draw what was asked for."""


class NoPicturesError(ModelError):
    """The provider makes no pictures, or none with this model (HTTP 404, 405 or 501)."""

    def __init__(self, provider: str, model: str, status: int) -> None:
        super().__init__(f"{provider!r} makes no pictures with {model!r} (HTTP {status})")
        self.provider = provider
        self.model = model


class BadPictureError(ModelError):
    """What came is no picture, a broken one, or could not be fetched."""

    def __init__(self, provider: str, cause: str) -> None:
        super().__init__(f"{provider!r} sent no usable picture: {cause}")
        self.provider = provider


class OversizedPictureError(ModelError):
    """The picture has more bytes than are taken."""

    def __init__(self, provider: str, limit: int) -> None:
        super().__init__(f"{provider!r} sent a picture of more than {limit} bytes")
        self.limit = limit


class EmptyAnswerError(ModelError):
    """The model answered without any text."""

    log_level = logging.INFO

    def __init__(self, provider: str) -> None:
        super().__init__(f"{provider!r} sent an empty answer")


class BadAnswerError(ModelError):
    """What came back is not an answer in the agreed shape."""

    def __init__(self, provider: str, cause: str) -> None:
        super().__init__(f"{provider!r} sent no usable answer: {cause}")
        self.provider = provider


class ToolLoopError(ModelError):
    """The model kept calling tools and never answered (`maxToolSteps`)."""

    log_level = logging.INFO

    def __init__(self, steps: int) -> None:
        super().__init__(f"the model still called tools after {steps} steps")
        self.steps = steps
