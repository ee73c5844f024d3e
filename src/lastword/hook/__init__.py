"""Approving for agents that people already use: their hooks put a card into the one queue, and carry the answer back.

    gate.py           the program that an agent starts: reads, decides, answers, and exits with 2 whatever goes wrong
    agents.py         which agents there are, what their tools do, which keys the person has turned
    event.py          what an agent says, what of it acts, and what it wants to hear
    agent_tool.py     an agent's tool as one of ours, its card, and what rules say of it
    question.py       a question in the queue, answered once, and what the agent says afterwards
    installation.py   the settings of an agent with our hook in them, and back

It has to start fast. Nothing here imports the MCP SDK, the terminal, rich or click.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.hook.agent_tool import agents_tool as agents_tool
    from lastword.hook.agent_tool import agents_tools as agents_tools
    from lastword.hook.agents import AGENTS as AGENTS
    from lastword.hook.agents import CLAUDE as CLAUDE
    from lastword.hook.agents import SAYS as SAYS
    from lastword.hook.agents import WORDS as WORDS
    from lastword.hook.agents import Agent as Agent
    from lastword.hook.agents import AgentKeys as AgentKeys
    from lastword.hook.event import FOLDER as FOLDER
    from lastword.hook.event import Allowed as Allowed
    from lastword.hook.event import HookInput as HookInput
    from lastword.hook.gate import main as main
    from lastword.hook.installation import HookChange as HookChange
    from lastword.hook.installation import Hooks as Hooks
    from lastword.hook.installation import InstalledHook as InstalledHook
    from lastword.hook.installation import is_denial as is_denial
    from lastword.hook.installation import probe_for as probe_for
    from lastword.hook.installation import settings_file as settings_file
    from lastword.hook.question import ask as ask
else:
    __getattr__ = open_door(__name__)
