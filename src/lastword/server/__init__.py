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
