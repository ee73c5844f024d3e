"""What tool code may not do, and how it is kept from it.

While a card is drawn the request function runs under a `Guard`: an effect is refused and written down, and what it
reads is noted as `Observations`, which are part of the question. And what only a person may decide is refused to a
process that a tool or an agent started (`refuse_below`).
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.tools.guard.ancestry import MARKER as MARKER
    from lastword.tools.guard.ancestry import given_above as given_above
    from lastword.tools.guard.ancestry import host_name as host_name
    from lastword.tools.guard.ancestry import is_below as is_below
    from lastword.tools.guard.ancestry import is_in_folder_above as is_in_folder_above
    from lastword.tools.guard.ancestry import mark as mark
    from lastword.tools.guard.ancestry import note_agent as note_agent
    from lastword.tools.guard.ancestry import refuse_below as refuse_below
    from lastword.tools.guard.audit_hook import Guard as Guard
    from lastword.tools.guard.audit_hook import note_state as note_state
    from lastword.tools.guard.observations import MAX_OBSERVATIONS as MAX_OBSERVATIONS
    from lastword.tools.guard.observations import Observation as Observation
    from lastword.tools.guard.observations import Observations as Observations
    from lastword.tools.guard.observations import changed_files as changed_files
    from lastword.tools.guard.observations import changed_state as changed_state
else:
    __getattr__ = open_door(__name__)
