"""Every example of docs/nuwascript.md runs and prints what the page says."""

import re
from pathlib import Path

import pytest

from lastword.script import PlacedError, ScriptLimits, check, tokens
from lastword.script.builtins import BUILTINS
from requirements import requirement
from script.hosts import SIGNATURES, run

PAGE = (Path(__file__).parents[2] / "docs" / "nuwascript.md").read_text()
EXAMPLES = re.findall(r"```nuwa( fails)?\n(.*?)```\n```text\n(.*?)```", PAGE, re.DOTALL)


@requirement("NUWA-20", "NUWA-21")
@pytest.mark.parametrize(("fails", "script", "printed"), EXAMPLES, ids=[text.split("\n")[0] for _, text, _ in EXAMPLES])
async def test_an_example_does_what_the_page_says(fails: str, script: str, printed: str) -> None:
    """A page that a model is given must be true."""
    if fails:
        assert [str(finding) for finding in check(script, SIGNATURES)] == [printed.rstrip("\n")]
        return
    assert check(script, SIGNATURES) == []
    result = await run(script)
    assert result.error is None
    assert "".join(f"{line}\n" for line in result.output) == printed


def test_every_example_of_the_page_is_run() -> None:
    """An example without its output beside it would not be tested."""
    assert PAGE.count("```nuwa") == len(EXAMPLES) >= 6


@requirement("NUWA-40")
def test_the_page_names_every_function_error_and_limit() -> None:
    """What exists and is not on the page does not exist for a model."""
    missing = [name for name in BUILTINS if f"`{name}(" not in PAGE]
    classes = [
        name
        for name, kind in vars(tokens).items()
        if isinstance(kind, type) and issubclass(kind, PlacedError) and kind is not PlacedError
    ]
    missing += [name for name in classes if not re.search(rf"\b{name}\b", PAGE)]
    missing += [name for name in ScriptLimits.__struct_fields__ if f"`{name}`" not in PAGE]
    assert missing == []
    assert len(classes) == 21
