"""`python -m lastword` is `lastword`. A hook is told apart before the command line is loaded: an agent waits for it."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, NoReturn

from lastword import hook
from lastword.lazily import load_later

if TYPE_CHECKING:
    from lastword import cli
else:
    cli = load_later("lastword.cli")

_AGENTS = ("claude", "codex", "gemini")
# What no hook says when all is well: the one exit code by which agents take no for an answer.
_DENY = 2


def main() -> NoReturn:
    """The entry point of the console script."""
    if sys.argv[1:2] == ["hook"] and sys.argv[2:3] and sys.argv[2] in _AGENTS and "--help" not in sys.argv:
        gc.disable()  # What is loaded stays. Looking through it for garbage costs a tenth of the start.
        try:
            hook.main(sys.argv[2:])
        except BaseException as problem:
            sys.stderr.write(f"lastword: nothing was allowed. It could not be loaded: {problem!r}\n")
            sys.exit(_DENY)
    cli.main()


if __name__ == "__main__":
    main()
