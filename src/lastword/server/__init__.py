"""The assistant API: an OpenAI-compatible server that talks to the model and never runs a tool.

Nothing here can import the code that carries out calls. That is the product's promise, and a test reads the imports.

One turn goes this way:

    http_server        sockets, slow headers and bodies, too many connections, the graceful stop
    middleware         what every request passes: Host, Origin, body, log; and whether anybody still waits
    app                who may call an operation, and how often (auth); the OpenAPI document
    operations         the list of operations, with scope and types
    turns              from request to answer, whole or piece by piece
    request_messages   which messages of it count, which results are honoured
    conversations      who said what, and which request is pending: folds over the store's records (store_follower)
    history            what the model gets to see of it, and in which order
    upstream           the model's server over HTTP (model_server: what is known of any)
    completion         what it sends, checked and filled up
    reply              what the model's message asks for, and what of it may be kept
    responses_*        the same turn in OpenAI's newer form
    api_types          what comes in and goes out, as types; limits, metrics: as they say
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.server.api_types import ErrorBody, Refusal
    from lastword.server.app import build_app
    from lastword.server.auth import Tokens, is_loopback
    from lastword.server.completion import Completion
    from lastword.server.conversations import Conversations, EndedUnused
    from lastword.server.http_server import Serving
    from lastword.server.middleware import EventStream, Middleware, Stopping, read_body
    from lastword.server.model_server import Abilities, ModelNames, Upstream
    from lastword.server.reply import is_script
    from lastword.server.server_limits import ServerLimits
    from lastword.server.upstream import ChangingUpstream, HttpUpstream
else:
    __getattr__ = open_door(__name__)
