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
