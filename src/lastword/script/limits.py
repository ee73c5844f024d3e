"""How much a script may use. Every limit has a name, a reason and a test; reaching one is `LimitExceeded`.

All but the seconds are deterministic: the same script with the same answers stops at the same place on any machine, so
a replay stops where the run did. How deep a text may nest and how long it may be are the parser's: MAX_NESTING and
MAX_SOURCE.
"""

from __future__ import annotations

import msgspec


class ScriptLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one run may use. Zero is a limit like any other; there is no "unlimited"."""

    steps: int = 20_000_000
    """Parts of expressions evaluated, and the work of functions and comparisons, each about a tenth of a microsecond:
    some seconds of computing. A FOR is charged its length times the cost of its body on entering, so that it fails
    before its first effect; one with a CALL or another FOR inside begins all the same, since it may end before that."""
    at_once: int = 250_000
    """Steps that the functions and comparisons of one expression may take together. Nothing can have its turn before
    they are done, so this is about 25 ms: a SORT of 40,000 numbers, a SPLIT into 250,000 pieces."""
    seconds: float = 10.0
    """Computing time. Waiting for a tool or a person does not count."""
    calls: int = 20_000
    """CALLs. Each may end on somebody's screen."""
    output_bytes: int = 1_000_000
    """What PRINT may write, in UTF-8, with a line end for every line."""
    string_length: int = 1_000_000
    """Characters in one string that a script makes."""
    list_length: int = 1_000_000
    """Elements in one list that a script makes."""
    value_size: int = 2_000_000
    """Characters and elements in one value that is printed, compared, given to a tool or left in a variable."""
    value_depth: int = 600
    """How deep such a value may nest. Equal to what canonical JSON allows."""
    created_words: int = 32_000_000
    """Everything a script makes, in units of about eight bytes: an upper bound of 256 MB, had nothing been freed."""
