"""What travels between the server, whoever talks to it, and the page."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.wire.protocol import NotARequest as NotARequest
    from lastword.wire.protocol import Opening as Opening
    from lastword.wire.protocol import ToolRequest as ToolRequest
    from lastword.wire.protocol import Why as Why
    from lastword.wire.protocol import parse_arguments as parse_arguments
    from lastword.wire.protocol import parse_tool_request as parse_tool_request
    from lastword.wire.protocol import result_message as result_message
    from lastword.wire.sse import MEDIA as MEDIA
    from lastword.wire.sse import EventReader as EventReader
    from lastword.wire.sse import EventTooLarge as EventTooLarge
    from lastword.wire.sse import SentEvent as SentEvent
    from lastword.wire.sse import read_events as read_events
    from lastword.wire.sse import write_comment as write_comment
    from lastword.wire.sse import write_event as write_event
    from lastword.wire.sse import write_retry as write_retry
else:
    __getattr__ = open_door(__name__)
