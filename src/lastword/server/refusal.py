"""An error of the API, in the shape that OpenAI's clients read.

What does not live here: deciding to refuse. Every room raises its own.
"""

from __future__ import annotations

import msgspec

from lastword.errors import LastWordError

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    421: "invalid_request_error",
    429: "rate_limit_error",
    500: "server_error",
    502: "upstream_error",
    503: "server_error",
    504: "upstream_error",
}


class ErrorDetail(msgspec.Struct, frozen=True):
    """What went wrong."""

    message: str
    type: str
    code: str
    param: str | None = None


class ErrorBody(msgspec.Struct, frozen=True):
    """Every answer that is not a success."""

    error: ErrorDetail


class Refusal(LastWordError):
    """A request that gets an error for an answer. `code` is for programs, the text for people."""

    def __init__(
        self,
        status: int,
        code: str,
        fact: str,
        *,
        param: str | None = None,
        hint: str | None = None,
        headers: dict[str, str] | None = None,
        is_upstream: bool = False,
    ) -> None:
        super().__init__(fact, hint=hint)
        self.is_upstream = is_upstream or code.startswith("upstream_") or code == "no_model"
        """Whether the model's server is to blame."""
        self.status = status
        self.code = code
        self.param = param
        self.headers = headers or {}

    def body(self) -> ErrorBody:
        """As it goes over the wire."""
        return ErrorBody(ErrorDetail(str(self), TYPES[self.status], self.code, self.param))
