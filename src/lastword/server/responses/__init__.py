"""OpenAI's newer form of the same turn: `/v1/responses`.

    wire      what comes in and goes out, as types
    naming    ids that say where their thing is: the turn of a conversation
    request   a request in that form as the chat request it stands for
    answer    an answer as output items, from the model or from memory
    events    the same, piece by piece

The turn itself is the one of chat.py: a conversation that was begun here can be gone on with there.
"""
