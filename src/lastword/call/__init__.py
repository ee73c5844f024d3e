"""The life of one call: drawing, asking, running, and what is left behind when a program dies."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.call.changes import Undone as Undone
    from lastword.call.changes import last_changed as last_changed
    from lastword.call.changes import take_back as take_back
    from lastword.call.desk import OnQuestion as OnQuestion
    from lastword.call.desk import handler_for as handler_for
    from lastword.call.desk import wait_for_answer as wait_for_answer
    from lastword.call.door import Door as Door
    from lastword.call.recovery import Decision as Decision
    from lastword.call.recovery import difference as difference
    from lastword.call.recovery import recover as recover
    from lastword.call.recovery import resolve as resolve
    from lastword.call.setting import Answered as Answered
    from lastword.call.setting import Asked as Asked
    from lastword.call.setting import DeniedByRule as DeniedByRule
    from lastword.call.setting import Event as Event
    from lastword.call.setting import Finished as Finished
    from lastword.call.setting import Limits as Limits
    from lastword.call.setting import Printed as Printed
    from lastword.call.setting import QuestionAnswered as QuestionAnswered
    from lastword.call.setting import QuestionAsked as QuestionAsked
    from lastword.call.setting import Reported as Reported
    from lastword.call.setting import RunFinished as RunFinished
    from lastword.call.setting import RunStarted as RunStarted
    from lastword.call.setting import Setting as Setting
    from lastword.call.setting import Started as Started
    from lastword.call.stop_all import Stopped as Stopped
    from lastword.call.stop_all import Subscription as Subscription
    from lastword.call.stop_all import stop as stop
    from lastword.call.threads import Home as Home
else:
    __getattr__ = open_door(__name__)
