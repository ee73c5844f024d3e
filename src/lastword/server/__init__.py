"""The assistant API: an OpenAI-compatible server that talks to the model and never runs a tool.

    limits         the named limits
    refusal        an error as OpenAI's clients expect it
    wire           what comes in and goes out, as types
    tail           the end of the store's list, followed for tokens and conversations together
    auth           tokens, scopes, who is calling
    conversations  who said what, and which request is pending: folds over the store's records
    intake         which messages of a request count, which results are honoured
    prompt         what the model gets to see, and in which order
    scripts        whether a message is a script; it is read, never run
    reply          what the model's message asks for
    secrecy        what of it may be kept: secrets go out with the answer and into no memory
    reply_shape    what a model's server sends, checked and filled up
    upstream       the model's server
    presence       whether anybody still waits for an answer
    metrics        what is counted
    chat           one turn, from request to answer
    stream         the same turn, piece by piece
    responses      the same turn in OpenAI's newer form
    operations     the list of operations, with scope and types; the app and the OpenAPI document are made from it
    openapi        the document
    perimeter      what every request passes: Host, Origin, body, log, metrics
    app            all of it together; who may, and how often
    connections    who has to go when there are too many of them
    serving        sockets, slow headers and bodies, the graceful stop

Nothing here can import the code that carries out calls. That is the product's promise, and a test reads the imports.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.server.abilities import Abilities as Abilities
    from lastword.server.abilities import Dialect as Dialect
    from lastword.server.app import INSIDE as INSIDE
    from lastword.server.app import build_app as build_app
    from lastword.server.auth import SCOPES as SCOPES
    from lastword.server.auth import Tokens as Tokens
    from lastword.server.auth import require as require
    from lastword.server.changing import ChangingUpstream as ChangingUpstream
    from lastword.server.chat import CONFIGURED as CONFIGURED
    from lastword.server.context import TOO_LONG as TOO_LONG
    from lastword.server.conversations import Conversations as Conversations
    from lastword.server.conversations import EndedUnused as EndedUnused
    from lastword.server.limits import ServerLimits as ServerLimits
    from lastword.server.metrics import Metrics as Metrics
    from lastword.server.model_names import shown_name as shown_name
    from lastword.server.model_names import shown_names as shown_names
    from lastword.server.model_names import unlisted_words as unlisted_words
    from lastword.server.perimeter import EventStream as EventStream
    from lastword.server.perimeter import Perimeter as Perimeter
    from lastword.server.perimeter import access_log as access_log
    from lastword.server.perimeter import read_body as read_body
    from lastword.server.presence import Stopping as Stopping
    from lastword.server.refusal import ErrorBody as ErrorBody
    from lastword.server.refusal import Refusal as Refusal
    from lastword.server.reply_shape import Completion as Completion
    from lastword.server.reply_shape import check_completion as check_completion
    from lastword.server.scripts import is_script as is_script
    from lastword.server.serving import Serving as Serving
    from lastword.server.serving import allow_descriptors as allow_descriptors
    from lastword.server.serving import bind as bind
    from lastword.server.serving import is_loopback as is_loopback
    from lastword.server.upstream import USUAL as USUAL
    from lastword.server.upstream import HttpUpstream as HttpUpstream
    from lastword.server.upstream import Upstream as Upstream
    from lastword.server.upstream import find_local as find_local
else:
    __getattr__ = open_door(
        __name__,
        abilities="Abilities Dialect",
        app="INSIDE build_app",
        auth="SCOPES Tokens require",
        changing="ChangingUpstream",
        chat="CONFIGURED",
        context="TOO_LONG",
        conversations="Conversations EndedUnused",
        limits="ServerLimits",
        metrics="Metrics",
        model_names="shown_name shown_names unlisted_words",
        perimeter="EventStream Perimeter access_log read_body",
        presence="Stopping",
        refusal="ErrorBody Refusal",
        reply_shape="Completion check_completion",
        scripts="is_script",
        serving="Serving allow_descriptors bind is_loopback",
        upstream="HttpUpstream USUAL Upstream find_local",
    )
