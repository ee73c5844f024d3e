"""NuwaScript: the language a model writes and a person can read.

A row of modules, each knowing only those before it:

    tokens, nodes ← hints ← expression_parser ← parser                from text to a tree
    runtime ← operators ← builtins                                    what a run may use, and what values can do
    expressions, steps ← compiler ← machine                           from a tree to a run
    printer, redaction                                                from a tree back to text, also without its secrets
    signatures ← expression_checker ← checker                         what is known of a script before it runs
    static_plan, prompt, grammar                                      what is told of it

`prompt` is a vocabulary: the sentences for a model. Nothing here knows what a tool is. The checker is given signatures;
the machine hands each CALL to a host.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.script import prompt
    from lastword.script.checker import check, read
    from lastword.script.grammar import script_grammar
    from lastword.script.machine import Machine, aside
    from lastword.script.parser import can_go_on, does_something, parse
    from lastword.script.printer import format_script
    from lastword.script.redaction import Concealed
    from lastword.script.runtime import ScriptLimits
    from lastword.script.signatures import Signature, SignatureParameter
    from lastword.script.static_plan import Step, plan, plan_text
    from lastword.script.tokens import CallFailed, PlacedError, Site
else:
    __getattr__ = open_door(__name__)
