"""What travels between the server, whoever talks to it, and the page."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.wire.protocol import (
        NotARequest,
        Opening,
        ToolRequest,
        Why,
        parse_arguments,
        parse_tool_request,
        result_message,
    )
    from lastword.wire.sse import (
        MEDIA,
        EventReader,
        EventTooLarge,
        SentEvent,
        read_events,
        write_comment,
        write_event,
        write_retry,
    )
else:
    __getattr__ = open_door(__name__)
