"""A tool that pays, a script that pays twice, and what a process leaves that was killed in the middle of either."""

import asyncio
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import lastword
from lastword.journal import data_of
from lastword.store import SqliteStore
from sending import until
from surfaces.screens import Program, lastword_command

JOURNAL = Path("data/lastword/lastword.db")

PAY = """
import asyncio
from pathlib import Path
from lastword import AssistantTool

def request(params):
    return {"title": f"Pay {params['to']}", "message": f"Send {params['amount']} to {params['to']}?"}

async def execute(params, user_action):
    if not user_action.primary_confirmed:
        return {"success": False, "message": "Then not."}
    with Path("paid").open("a") as file:
        file.write(f"{params['to']}\\n")
    if Path("hang").exists():
        await asyncio.Event().wait()
    return {"success": True, "message": f"Paid {params['amount']} to {params['to']}."}

AssistantTool.register_approval_request(request)
AssistantTool.register_execute_tool_with_approval(execute)
"""
MANIFEST = {
    "displayName": "Pay somebody", "id": "pay", "description": "Sends money to somebody.", "requireApproval": True,
    "parameters": [
        {"name": "to", "type": "string", "description": "Who gets it."},
        {"name": "amount", "type": "number", "description": "How much."},
    ],
}  # fmt: skip
BILLS = """LET a = CALL pay { to: "Ann", amount: 5 }
PRINT(a.message)
LET b = CALL pay { to: "Ben", amount: 7 }
PRINT(b.message)
"""


async def allow(request):
    return request.allow()


def killed(run_id: str, *, while_it_runs: bool, alone: bool = False) -> None:
    """Leave what a process leaves that was killed in a run, or in a call alone: while its card waited, or it ran."""

    async def live() -> None:
        registry = lastword.ToolRegistry()
        registry.load("mine")
        living = Path("living.db")
        for end in ("", "-head"):
            if Path(f"{JOURNAL}{end}").exists():
                shutil.copy(f"{JOURNAL}{end}", f"living.db{end}")
        journal = lastword.Journal(SqliteStore(living))
        approver = allow if while_it_runs else lastword.wait_for_answer
        session = lastword.Session(registry, id=f"of-{run_id}", approver=approver, journal=journal)
        work: asyncio.Task[object]
        if alone:
            work = asyncio.create_task(session.call("pay", {"to": "Ann", "amount": 5}, call_id=run_id))
        else:
            work = asyncio.create_task(session.run_script(BILLS, run_id=run_id, name=f"{run_id}.nuwa"))
        if while_it_runs:
            Path("hang").touch()
            await until(Path("paid").exists)
        else:
            await until(session.pending)
        await journal.store.commit()
        JOURNAL.parent.mkdir(parents=True, exist_ok=True)
        for end in ("", "-wal", "-head"):
            if Path(f"living.db{end}").exists():
                shutil.copy(f"living.db{end}", f"{JOURNAL}{end}")
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await journal.close()
        for left in Path().glob("living.db*"):
            if left.is_file():
                left.unlink()
        Path("hang").unlink(missing_ok=True)

    asyncio.run(live())


Transcript = Callable[..., str]


def with_digest(words: list[str]) -> list[str]:
    """A command in which DIGEST stands for that of the card, as whoever has read it would type it."""
    if "DIGEST" not in words:
        return words

    async def find() -> str:
        store = SqliteStore(
            words[words.index("--store") + 1].removeprefix("sqlite:///") if "--store" in words else JOURNAL
        )
        (asked,) = await store.read(subject=words[1], kind="asked", last=1)
        await store.close()
        digest: str = data_of(asked)["digest"]
        return digest

    return [asyncio.run(find()) if word == "DIGEST" else word for word in words]


def mask(text: str) -> str:
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE     TIME", text)
    text = re.sub(r" +\+[\d.]+ (ms|s)\b", "  +TIME", text)
    return re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text)


@contextmanager
def at_terminal(*words: str) -> Iterator[Program]:
    """A command in a terminal of its own, in this folder and with its memory."""
    with closing(
        Program(*lastword_command(), *words, cwd=Path.cwd(), XDG_DATA_HOME=str(Path("data").absolute()))
    ) as it:
        yield it
