"""`lastword journal`: proving, accepting, exporting, copying, pruning and forgetting what is remembered."""

from __future__ import annotations

import asyncio
import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lastword import values
from lastword.commands.invocation import (
    DONE,
    NOT_ALLOWED,
    CommandOption,
    Misused,
    StoreError,
    agreed,
    check_flag,
    did_you_mean,
    print_json,
    print_list,
    refuse_below,
    say,
    with_journal,
    with_own_journal,
)
from lastword.consent import Kept
from lastword.server import Conversations, EndedUnused
from lastword.store import Behind, Entry, Head, Pruned, Store, StoreAddress, copy_store, export, verify_export

if TYPE_CHECKING:
    from lastword.journal import Journal

# Conversations read together when they are listed.
CONVERSATIONS_PAGE = 500


@click.group()
def journal() -> None:
    """Verify, accept, export, copy or forget what is remembered."""


@journal.command()
@click.option("--head", metavar="SEQ:DIGEST", help="A head that you kept elsewhere: nothing before it may be missing.")
@click.option(
    "--from", "start", metavar="SEQ:DIGEST", help="Start at a head that was verified before, and verify what follows."
)
@click.option("--file", metavar="FILE", help="Verify an exported file instead.")
@CommandOption.store
def verify(head: str | None, start: str | None, file: str | None, store: str | None) -> int:
    """Prove that nothing in the journal was changed, and print its head."""
    pin, known = _given_head("--head", head), _given_head("--from", start)
    if file is not None:
        if known is not None:
            raise Misused("an exported file is verified whole", place="--from", hint="leave --from out")
        try:
            with Path(file).open("rb") as lines:
                end = verify_export(lines, name=file, head=pin)
        except OSError as problem:
            raise Misused(f"it cannot be read: {problem.strerror}", place=file) from None
    else:
        end = with_journal(store, lambda journal: _verify(journal, pin, known))
    if known is None:
        click.echo(f"{_records(end.seq)}, each as it was written.")
    else:
        click.echo(f"{_records(end.seq - known.seq)} after {known.seq}, each as it was written.")
    click.echo(f"head {end}")
    if pin is None:
        click.echo("Keep the head somewhere else: with --head it proves later that nothing was cut off.")
    return DONE


def _given_head(option: str, text: str | None) -> Head | None:
    try:
        return None if text is None else Head.parse(text)
    except StoreError as problem:
        raise Misused(problem.fact, place=option, hint=problem.hint) from None


def _records(count: int) -> str:
    return f"{count} {'record' if count == 1 else 'records'}"


async def _verify(journal: Journal, pin: Head | None, start: Head | None) -> Head:
    """A journal that is not there proves nothing, so the empty one that opening makes must not pass for it."""
    if not (await journal.store.head()).seq:
        raise Misused(
            "there is nothing in this journal",
            place="lastword journal",
            hint="--store names another; lastword doctor says which",
        )
    end = await journal.store.verify(head=pin, start=start)
    if start is None:
        await journal.prove_contents()
    return end


@journal.command()
@click.option("--head", metavar="SEQ:DIGEST", help="Accept without asking, if this is where the journal ends.")
@CommandOption.store
@CommandOption.json
def accept(head: str | None, store: str | None, as_json: bool) -> int:
    """Accept a journal that has lost records which were seen before.

    A journal starts no approved call after its log was lost, it was restored from a copy or another one replaced it.
    This shows what is known, and asks.
    """
    refuse_below("lastword journal accept")
    pin = _given_head("--head", head)

    async def look(journal: Journal) -> Behind | None:
        return await journal.store.behind()

    behind = with_own_journal(store, "lastword journal accept", look)
    if as_json and (behind is None or pin is None):
        print_json(None if behind is None else _facts(behind) | {"accepted": False})
        return DONE
    if behind is None:
        click.echo("There is nothing to accept: the journal holds everything that was seen of it.")
        return DONE
    if pin is None:
        _tell(behind)
    if not agreed("Go on from here?", head, str(behind.found), "--head", "accept"):
        return NOT_ALLOWED
    with_journal(store, lambda journal: _accept(journal, behind))
    if as_json:
        print_json(_facts(behind) | {"accepted": True})
    else:
        click.echo(f"Accepted. Approved calls start again, and the journal goes on from record {behind.found.seq}.")
    return DONE


async def _accept(journal: Journal, seen: Behind) -> None:
    """Write down what was accepted, and let it count."""
    behind = await journal.store.behind()
    if behind is None or behind.seen != seen.seen or not await journal.store.contains(seen.found):
        raise Misused(
            "the journal changed while you looked at it",
            place="lastword journal accept",
            hint="look again; nothing was done",
        )
    at = int(journal.clock() * 1_000_000)
    data = values.canonical(_facts(seen))
    await journal.store.commit(Entry("journal", "journal.accepted", str(seen.found), at, data))
    await journal.store.accept(await journal.store.head())


def _facts(behind: Behind) -> dict[str, Any]:
    seen = behind.seen
    return {
        "fact": behind.fact,
        "found": str(behind.found),
        "seen": None if seen is None else str(seen),
        "missing": None if seen is None else max(0, seen.seq - behind.found.seq),
    }


def _tell(behind: Behind) -> None:
    """What a person has to know before they accept it."""
    seen, missing = behind.seen, 0 if behind.seen is None else behind.seen.seq - behind.found.seq
    say(f"This journal lacks what was seen of it: {behind.fact}.", err=True, fits=True)
    click.echo(err=True)
    click.echo(f"  last seen  {'not known any more' if seen is None else seen}", err=True)
    click.echo(f"  found      {behind.found}", err=True)
    click.echo(f"  missing    {f'at least {_records(missing)}' if missing > 0 else 'not known'}\n", err=True)
    say(_MEANING, err=True, fits=True)


_MEANING = (
    "Its log (-wal) was lost, it was restored from a copy, or it is another journal. Approvals that were spent in what "
    "is missing may be unspent here: a call that was carried out may be asked for again, and a run that goes on may do "
    "again what it has done. If you have the right file, put it back instead. If not, look at what such calls change."
)


@journal.command("export")
@click.argument("file", required=False, default="-")
@CommandOption.store
def export_command(file: str, store: str | None) -> int:
    """Write every record as a line of JSON. `-`, or nothing, is standard output."""

    async def write(journal: Journal) -> None:
        try:
            with click.open_file(file, "wb") as out:
                async for line in export(journal.store):
                    out.write(line)
        except OSError as problem:
            if isinstance(problem, BrokenPipeError):
                raise
            raise Misused(f"it cannot be written: {problem.strerror}", place=file) from None

    with_journal(store, write)
    return DONE


@journal.command()
@click.option("--before", required=True, metavar="DATE", help="Forget the contents of records before this day.")
@CommandOption.store
def prune(before: str, store: str | None) -> int:
    """Delete the contents of old records. Their existence, order and keys stay, and stay verifiable.

    Conversations in which nothing was said since then are deleted. Sessions that still have a call in doubt, a waiting
    question or an unfinished run keep everything, including their conversation.
    """
    try:
        day = datetime.datetime.fromisoformat(before).astimezone()
    except ValueError:
        raise Misused(f"found {before!r}, expected a date", place="--before", hint="for instance 2026-01-31") from None
    gone, ended = with_own_journal(store, "lastword journal prune", lambda journal: _prune(journal, day.timestamp()))
    click.echo(f"The contents of {gone.records} {'record was' if gone.records == 1 else 'records were'} forgotten.")
    if gone.contents:
        what = "image, sound, file or text" if gone.contents == 1 else "images, sounds, files and texts"
        were = "was" if gone.contents == 1 else "were"
        size = Kept.size_in_words(gone.content_bytes)
        click.echo(f"With them {gone.contents} {what} that nothing else holds {were} deleted, {size} in all.")
    if ended.conversations:
        click.echo(f"{ended}.")
    return DONE


async def _prune(journal: Journal, before: float) -> tuple[Pruned, EndedUnused]:
    is_open = await journal.unfinished()
    forgotten = await journal.prune(before)
    conversations = Conversations(journal.store)
    await conversations.finish_deletions()
    return forgotten, await conversations.end_unused(before, keep=is_open)


@journal.command()
@CommandOption.store
@CommandOption.json
def conversations(store: str | None, as_json: bool) -> int:
    """List the conversations that are kept, oldest first."""

    def tell(facts: dict[str, str]) -> None:
        click.echo(f"{facts['began']}  {facts['id']}")

    return print_list(with_journal(store, _list_conversations), as_json, tell, none="No conversation is kept.")


async def _list_conversations(journal: Journal) -> list[dict[str, str]]:
    kept = Conversations(journal.store)
    found: list[dict[str, str]] = []
    after: int | None = 0
    while after is not None:
        records, after = await kept.page(None, after, CONVERSATIONS_PAGE)
        for record in records:
            began = datetime.datetime.fromtimestamp(record.at / 1e6).astimezone()
            found.append({"id": record.subject, "began": began.isoformat(" ", "minutes")})
    return found


@journal.command()
@click.argument("conversation")
@CommandOption.store
def forget(conversation: str, store: str | None) -> int:
    """Forget every word of one conversation. The chain still shows that there was one, and its id stays used.

    While its session has a call in doubt, a waiting question or an unfinished run, the conversation is kept.
    """
    gone = with_own_journal(store, "lastword journal forget", lambda journal: _forget(journal, conversation))
    click.echo(f"{gone}.")
    return DONE


async def _forget(journal: Journal, id: str) -> EndedUnused:
    kept = Conversations(journal.store)
    found = await kept.find(id)
    if found is None:
        known = [facts["id"] for facts in await _list_conversations(journal)]
        hint = did_you_mean(id, known) or "lastword journal conversations lists those that are kept"
        raise Misused("there is no such conversation", place=id, hint=hint)
    if id in await journal.unfinished():
        hint = "lastword approvals and lastword runs name what is open"
        raise Misused("something in its session is still open", place=id, hint=hint)
    messages = len(found.lines)
    await kept.delete(found)
    return EndedUnused(1, messages)


_WARNING = (
    "Use one of them from now on, and keep the other as a copy: what is answered in the one is still unanswered in the "
    "other."
)


@journal.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def copy(source: str, target: str) -> int:
    """Copy a whole journal into an empty one, between a file and a server, and prove both.

    FROM and TO are addresses: sqlite:///FILE or postgresql://USER@HOST/DATABASE?store=NAME. An interrupted copy
    continues when it is started again. First stop everything that uses the journal.
    """
    refuse_below("lastword journal copy")
    for address in (source, target):
        check_flag(address)
    if str(StoreAddress(source)) == str(StoreAddress(target)):
        raise Misused("both are the same journal", place="lastword journal copy", hint="name another one to copy to")
    head = asyncio.run(_copy(_movable(source), _movable(target)))
    click.echo(f"{head.seq} {'record' if head.seq == 1 else 'records'}, the same in both, each as it was written.")
    click.echo(f"head {head}")
    say(_WARNING, fits=True)
    return DONE


def _movable(address: str) -> Store:
    named = StoreAddress(address)
    store = named.open()
    if named.is_memory:
        raise Misused(
            "a journal in memory is gone when this command ends",
            place="lastword journal copy",
            hint="name a file or a server: sqlite:///FILE, postgresql://…",
        )
    return store


async def _copy(source: Store, target: Store) -> Head:
    try:
        for store in (source, target):
            refuse_below("lastword journal copy", store)
        return await copy_store(source, target)
    finally:
        await source.close()
        await target.close()


@journal.command()
@click.argument("role")
@click.option("--forgetting", is_flag=True, help="Also let it delete contents of records, for lastword journal prune.")
@CommandOption.store
def grant(role: str, forgetting: bool, store: str | None) -> int:
    """Let a PostgreSQL role use the journal: it may read and append, but neither change nor delete anything.

    Run this as the owner of the journal. The journal is made, or brought up to date, if necessary.
    """

    async def work(journal: Journal) -> None:
        if not await journal.store.grant(role, forgetting=forgetting):
            raise Misused(
                "only a server has roles",
                place="lastword journal grant",
                hint="a file is protected by its owner and mode; a server is named like postgresql://HOST/DATABASE",
            )

    with_own_journal(store, "lastword journal grant", work)
    more = ", append to it and forget what it says" if forgetting else " and append to it"
    click.echo(f"{role} may read the journal{more}. Nothing else.")
    return DONE
