"""NuwaScript: the language a model writes and a person can read.

A row of modules, each knowing only those before it:

    lexer ← errors, nodes ← hints ← expression_parser ← parser        from text to a tree
    runtime ← operators ← builtins ← scopes                           what values can do, and what a run may use
    expressions, steps ← program ← machine                            from a tree to a run
    printer, redaction                                                from a tree back to text, also without its secrets
    signatures ← inference ← checker; static_plan, prompt, grammar    what is known of a script before it runs

Nothing here knows what a tool is. The checker is given signatures; the machine hands each CALL to a host.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.script.builtins import BUILTINS as BUILTINS
    from lastword.script.checker import check as check
    from lastword.script.errors import CallFailed as CallFailed
    from lastword.script.errors import PlacedError as PlacedError
    from lastword.script.grammar import script_grammar as script_grammar
    from lastword.script.lexer import cut as cut
    from lastword.script.lexer import find_token as find_token
    from lastword.script.machine import Machine as Machine
    from lastword.script.machine import Result as Result
    from lastword.script.nodes import Calc as Calc
    from lastword.script.nodes import CallNode as CallNode
    from lastword.script.nodes import Do as Do
    from lastword.script.nodes import Function as Function
    from lastword.script.nodes import Name as Name
    from lastword.script.nodes import Script as Script
    from lastword.script.nodes import Statement as Statement
    from lastword.script.nodes import Stop as Stop
    from lastword.script.nodes import inside as inside
    from lastword.script.parser import parse as parse
    from lastword.script.printer import format_script as format_script
    from lastword.script.prompt import CHARACTERS_PER_TOKEN as CHARACTERS_PER_TOKEN
    from lastword.script.prompt import MAX_STATE as MAX_STATE
    from lastword.script.prompt import TOKEN_BUDGET as TOKEN_BUDGET
    from lastword.script.prompt import example_calls as example_calls
    from lastword.script.prompt import script_prompt as script_prompt
    from lastword.script.prompt import script_reference as script_reference
    from lastword.script.redaction import NOT_KEPT as NOT_KEPT
    from lastword.script.redaction import Concealed as Concealed
    from lastword.script.redaction import conceal as conceal
    from lastword.script.redaction import scrub as scrub
    from lastword.script.runtime import Host as Host
    from lastword.script.runtime import ScriptLimits as ScriptLimits
    from lastword.script.runtime import Site as Site
    from lastword.script.runtime import Tool as Tool
    from lastword.script.runtime import aside as aside
    from lastword.script.signatures import Signature as Signature
    from lastword.script.signatures import SignatureParameter as SignatureParameter
    from lastword.script.signatures import Signatures as Signatures
    from lastword.script.static_plan import Argument as Argument
    from lastword.script.static_plan import Step as Step
    from lastword.script.static_plan import plan as plan
    from lastword.script.static_plan import plan_text as plan_text
else:
    __getattr__ = open_door(__name__)
