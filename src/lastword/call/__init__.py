"""The life of one call: drawing, asking, running, and what is left behind when a program dies."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.call.background import Background as Background
    from lastword.call.background import running_loop as running_loop
    from lastword.call.changes import Undone as Undone
    from lastword.call.changes import last_changed as last_changed
    from lastword.call.changes import take_back as take_back
    from lastword.call.desk import wait_for_answer as wait_for_answer
    from lastword.call.door import Door as Door
    from lastword.call.events import Answered as Answered
    from lastword.call.events import Asked as Asked
    from lastword.call.events import DeniedByRule as DeniedByRule
    from lastword.call.events import Event as Event
    from lastword.call.events import Finished as Finished
    from lastword.call.events import Printed as Printed
    from lastword.call.events import QuestionAnswered as QuestionAnswered
    from lastword.call.events import QuestionAsked as QuestionAsked
    from lastword.call.events import Reported as Reported
    from lastword.call.events import RunFinished as RunFinished
    from lastword.call.events import RunStarted as RunStarted
    from lastword.call.events import Started as Started
    from lastword.call.hearing import Hearing as Hearing
    from lastword.call.questions import OnQuestion as OnQuestion
    from lastword.call.questions import handler_for as handler_for
    from lastword.call.recovery import Decision as Decision
    from lastword.call.setting import Limits as Limits
    from lastword.call.setting import Setting as Setting
    from lastword.call.stopping import Stopped as Stopped
    from lastword.call.stopping import stop as stop
else:
    __getattr__ = open_door(__name__)
