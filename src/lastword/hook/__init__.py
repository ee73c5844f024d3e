"""Approving for agents that people already use: their hooks put a card into the one queue, and carry the answer back.

    gate.py          the program that an agent starts: reads, decides, answers, and exits with 2 whatever goes wrong
    agents.py        which agents there are, what their tools do, which keys the person has turned
    event.py         what an agent says, what of it acts, and what it wants to hear
    agent_tool.py    an agent's tool as one of ours, its card, and what rules say of it
    decision.py      a question in the queue, answered once, and what the agent says afterwards
    installation.py  the settings of an agent with our hook in them, and back

It has to start fast. Nothing here imports the MCP SDK, the terminal, rich or click.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.hook.agent_tool import agents_tool, agents_tools
    from lastword.hook.agents import AGENTS, CLAUDE, SAYS, WORDS, Agent, AgentKeys
    from lastword.hook.decision import ask
    from lastword.hook.event import FOLDER, Allowed, HookInput
    from lastword.hook.gate import main
    from lastword.hook.installation import HookChange, Hooks, InstalledHook, is_denial, probe_for, settings_file
else:
    __getattr__ = open_door(__name__)
