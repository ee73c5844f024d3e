"""What calls returned beside their values, on the command line: named, saved, verified and pruned."""

import asyncio
import json
from pathlib import Path

import apsw
import pytest

import lastword
from commands.paying import JOURNAL
from lastword.cli import run
from requirements import requirement

PNG = b"\x89PNG\r\n\x1a\n" + bytes(3000)


@pytest.fixture(autouse=True)
def call_id(home: Path) -> str:
    """A call that returned an image, a file and words, in the journal of this folder."""

    async def live() -> None:
        registry = lastword.ToolRegistry()

        @registry.tool(require_approval=False)
        def plot() -> lastword.ToolResult:
            """Draw."""
            csv = lastword.File(b"a,b\n", name="../../t\u202e.csv")
            return lastword.ToolResult(7, [lastword.Image(PNG, name="plot.png", alt="Sales"), csv])

        @registry.tool(require_approval=False)
        def add() -> int:
            """Add."""
            return 2

        journal = lastword.open_journal(f"sqlite:///{JOURNAL.absolute()}")
        async with lastword.Session(registry, id="s", journal=journal) as session:
            await session.call("plot", {}, call_id="one")
            await session.call("add", {}, call_id="two")
        await journal.close()

    asyncio.run(live())
    return "one"


@requirement("TOOL-64")
def test_show_names_what_was_kept_and_says_how_to_get_it(says, call_id):
    """A terminal draws no pictures; it says that there is one."""
    said = says(["show", call_id]).out
    assert "  image  plot.png, image/png, 3 KB: Sales\n  file   t.csv, text/csv, 4 bytes\n" in said
    assert "lastword show one --save DIR writes them into a folder." in said
    assert "--save" not in says(["show", "two"]).out


@requirement("TOOL-64")
def test_show_tells_a_program_the_digests_and_never_the_bytes(says, call_id):
    """Whoever reads the journal's JSON gets digest, type and size."""
    finished = json.loads(says(["show", call_id, "--json"]).out)[-1]["data"]
    assert finished["content"][0].keys() == {"kind", "digest", "media_type", "size", "name", "alt"}


@requirement("TOOL-64")
def test_what_was_kept_is_saved_over_nothing_that_is_there(says, call_id):
    """A tool names the file; it must not be able to choose which of the person's files is lost."""
    folder = Path("out")
    folder.mkdir()
    (folder / "plot.png").write_text("mine")
    (folder / "t.csv").symlink_to(Path("elsewhere").absolute())
    assert "wrote out/plot-2.png" in says(["show", call_id, "--save", "out"]).err
    assert (folder / "plot.png").read_text() == "mine"
    assert (folder / "plot-2.png").read_bytes() == PNG
    assert (folder / "t-2.csv").read_bytes() == b"a,b\n"
    assert not Path("elsewhere").exists()


@requirement("TOOL-64")
def test_saving_what_is_not_there_is_refused_in_words(says, call_id):
    """Nothing saved is no success."""
    assert "it returned nothing that could be saved" in says(["show", "two", "--save", "out"], 2).err
    Path("file").write_text("")
    assert "it cannot be written" in says(["show", call_id, "--save", "file"], 2).err


@requirement("TOOL-64")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE contents SET data = CAST('forged' AS BLOB)",
        "DELETE FROM contents",
        "DELETE FROM contents; DELETE FROM holds",
        "UPDATE records SET data = CAST(replace(CAST(data AS TEXT), 'plot.png', '../p.png') AS BLOB)",
    ],
)
def test_a_journal_that_was_edited_gives_no_other_bytes_and_does_not_verify(capsys, call_id, change):
    """Also when everything that lies beside the records was taken away together: the record still names it."""
    raw = apsw.Connection(str(JOURNAL))
    raw.execute(change)
    raw.close()
    assert run(["journal", "verify"]) != 0
    assert run(["show", call_id, "--save", "out"]) != 0
    assert not Path("out").exists() or not any(Path("out").iterdir())
    assert "restore" in capsys.readouterr().err


@requirement("TOOL-64")
def test_pruning_says_how_much_went_with_the_records(says, call_id):
    """Numbers, because it cannot be taken back."""
    size = JOURNAL.stat().st_size
    assert size > len(PNG)
    said = says(["journal", "prune", "--before", "2100-01-01"]).out
    assert "With them 2 images, sounds, files and texts that nothing else holds were deleted, 3 KB in all.\n" in said
    assert run(["show", call_id, "--save", "out"]) == 2
    assert run(["journal", "verify"]) == 0
    assert PNG not in JOURNAL.read_bytes()
    assert "With them" not in says(["journal", "prune", "--before", "2100-01-01"]).out.splitlines()[-1]
