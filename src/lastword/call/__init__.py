"""The life of one call: drawing, asking, running, and what is left behind when a program dies.

What listeners are told of it (`events`) is a vocabulary.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.call.changes import Undone, last_changed, take_back
    from lastword.call.desk import OnQuestion, handler_for, wait_for_answer
    from lastword.call.door import Door
    from lastword.call.recovery import Decision, difference, recover, resolve
    from lastword.call.setting import Limits, Setting
    from lastword.call.stop_all import Stopped, Subscription, stop
    from lastword.call.threads import Home
else:
    __getattr__ = open_door(__name__)
