"""Approving for agents that people already use: their hooks put a card into the one queue, and carry the answer back.

    gate.py        the program that an agent starts: reads, decides, answers, and exits with 2 whatever goes wrong
    deciding.py    what is said to one event
    acting.py      what of a call acts, and where; which key its tool has
    keys.py        which keys the person has turned
    ruling.py      what rules say of it
    contract.py    what each agent says and wants to hear
    agents.py      which agents there are, and what their tools do
    showing.py     the card of an agent's call: a command, a diff, or arguments
    one_file.py    the file that an edit is compared with
    asking.py      a question in the queue, answered once
    closing.py     what the agent says afterwards
    installing.py  the settings of an agent with our hook in them, and back

It has to start fast. Nothing here imports the MCP SDK, the terminal, rich or click.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.hook.acting import FOLDER as FOLDER
    from lastword.hook.addresses import agents_tool as agents_tool
    from lastword.hook.addresses import agents_tools as agents_tools
    from lastword.hook.agents import AGENTS as AGENTS
    from lastword.hook.agents import CLAUDE as CLAUDE
    from lastword.hook.agents import Agent as Agent
    from lastword.hook.contract import Allowed as Allowed
    from lastword.hook.contract import HookInput as HookInput
    from lastword.hook.installing import HookChange as HookChange
    from lastword.hook.installing import Hooks as Hooks
    from lastword.hook.installing import InstalledHook as InstalledHook
    from lastword.hook.installing import is_denial as is_denial
    from lastword.hook.installing import probe_for as probe_for
    from lastword.hook.installing import settings_file as settings_file
    from lastword.hook.keys import SAYS as SAYS
    from lastword.hook.keys import WORDS as WORDS
    from lastword.hook.keys import AgentKeys as AgentKeys
else:
    __getattr__ = open_door(__name__)
