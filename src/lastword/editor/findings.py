"""What linters found, by path, and how much of it is passed on.

Apart from the linters: every call that looks at a project needs this, and few of them lint.
"""

from __future__ import annotations

from lastword.editor.provider import LintError

Findings = dict[str, list[LintError]]

# What a person or a model can still make use of.
MAX_FINDINGS = 2_000


def bounded(findings: Findings) -> Findings:
    """Cut at the limit, with a last finding that says so."""
    result: Findings = {}
    left = MAX_FINDINGS
    total = sum(len(found) for found in findings.values())
    for path, found in findings.items():
        if left <= len(found) and total > MAX_FINDINGS:
            said = f"and {total - MAX_FINDINGS + 1} more findings in this file and others"
            result[path] = [*found[: left - 1], LintError(line=found[-1]["line"], message=said)]
            return result
        result[path] = found
        left -= len(found)
    return result
