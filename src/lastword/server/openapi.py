"""The OpenAPI document, made from the list of operations and the types on the wire."""

from __future__ import annotations

from typing import Any

import msgspec

from lastword.server.limits import ServerLimits
from lastword.server.operations import OPERATIONS, ApiOperation
from lastword.server.refusal import ErrorBody

WORDS = {
    200: "Done.",
    400: "The request is not one, or the model's server refused it.",
    401: "No token, or not a good one.",
    403: "The token lacks the scope, or a page of another site sent the request.",
    404: "There is no such thing, or it is somebody else's.",
    405: "The path has no such method.",
    408: "The body came too slowly.",
    409: "Another turn is running, or there is nothing new in the request.",
    413: "Too much in one request.",
    415: "The body is not JSON.",
    421: "The Host header names another server.",
    429: "Too many requests; Retry-After says when to come back.",
    500: "The server failed.",
    502: "The model's server failed.",
    503: "The server is stopping.",
    504: "The model's server was too slow.",
}

# An event of a stream. Its data is a chunk in OpenAI's shape, or the word [DONE].
EVENT = {
    "type": "object",
    "properties": {"data": {"type": "string", "contentMediaType": "application/json"}},
    "required": ["data"],
}

STREAMED = ("chat", "create_response")
"""The operations whose answer may be a stream."""

# Where the answers of an operation name a conversation, and what can be done with one.
LINKS = {
    "chat": "conversation_id",
    "create_response": "conversation_id",
    "list_conversations": "data/0/id",
    "show_conversation": "id",
}
LINKED = ("show_conversation", "delete_conversation")


def document(limits: ServerLimits) -> dict[str, Any]:
    """The whole document."""
    kinds = [kind for operation in OPERATIONS for kind in (operation.takes, operation.returns) if kind is not None]
    template = "#/components/schemas/{name}"
    _, schemas = msgspec.json.schema_components([*kinds, ErrorBody], ref_template=template)
    schemas["ChatRequest"]["properties"]["messages"]["maxItems"] = limits.messages
    for form in schemas["ResponsesRequest"]["properties"]["input"]["anyOf"]:
        if form["type"] == "array":
            form["maxItems"] = limits.messages
    # Clients leave out what a message is, and it is put in before the types are looked at.
    schemas["InputMessage"]["required"].remove("type")
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "lastword: the assistant API",
            "version": "1",
            "description": "Chat completions with tools that somebody else runs. The server never runs one.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe(operation: ApiOperation) -> dict[str, Any]:
    # Whoever has to say who they are is also counted: app.py.
    refuses = {*operation.refuses, 403, 421, 500, *((401, 429) if operation.scopes else ())}
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": _parameters(operation),
        "responses": {
            "200": _response(operation),
            **{str(status): _refusal(status, operation.method) for status in sorted(refuses)},
        },
    }
    if operation.scopes:
        described["security"] = [{"token": []}]
        described["description"] = f"Needs the scope {' or '.join(f'`{scope}`' for scope in operation.scopes)}."
    if operation.takes is not None:
        schema = _schema(operation.takes)
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


def _parameters(operation: ApiOperation) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = []
    if "{id}" in operation.path:
        parameters.append({"name": "id", "in": "path", "required": True, "schema": _schema(operation.id_kind)})
    for number in operation.query:
        schema = {"type": "integer", "minimum": number.low, "maximum": number.high, "default": number.default}
        parameters.append({"name": number.name, "in": "query", "schema": schema, "description": number.description})
    return parameters


def _response(operation: ApiOperation) -> dict[str, Any]:
    if operation.method == "HEAD":
        return {"description": WORDS[200]}
    content: dict[str, Any] = {operation.media: {"schema": _schema(operation.returns)}}
    if operation.name in STREAMED:
        content["text/event-stream"] = {"schema": EVENT}
    described: dict[str, Any] = {"description": WORDS[200], "content": content}
    if operation.name in LINKS:
        found = {"id": f"$response.body#/{LINKS[operation.name]}"}
        described["links"] = {name: {"operationId": name, "parameters": found} for name in LINKED}
    if operation.name == "create_response":
        itself = {"operationId": "show_response", "parameters": {"id": "$response.body#/id"}}
        described["links"]["show_response"] = itself
    return described


def _refusal(status: int, method: str) -> dict[str, Any]:
    described: dict[str, Any] = {"description": WORDS[status]}
    if method != "HEAD":
        described["content"] = {"application/json": {"schema": _schema(ErrorBody)}}
    if status == 401:
        described["headers"] = {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}}
    if status == 429:
        described["headers"] = {"Retry-After": {"required": True, "schema": {"type": "string"}}}
    return described


def _schema(kind: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    return schema
