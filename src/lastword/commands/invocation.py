"""One invocation of a command: its options, configuration and memory, what it prints, and the person who decides.

What only a person decides takes a whole word at a terminal, or an exact digest in a script. `lastword serve` begins
here too: nothing of this loads what runs tools or draws cards, before it is asked for.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

# The doors of these two are lazy: many commands ask nobody.
from lastword import card, terminal, values

# How a command ends, and complains, stands where the command line is read. Every command has it from here.
from lastword.cli import DONE as DONE
from lastword.cli import EXIT_CODES as EXIT_CODES
from lastword.cli import FAILED as FAILED
from lastword.cli import INTERRUPTED as INTERRUPTED
from lastword.cli import NOT_ALLOWED as NOT_ALLOWED
from lastword.cli import UNKNOWN as UNKNOWN
from lastword.cli import WRONG_USAGE as WRONG_USAGE
from lastword.cli import Misused as Misused
from lastword.cli import complain as complain
from lastword.config import FILE as FILE
from lastword.config import Config, load
from lastword.consent import Answerer, People, Secrets
from lastword.display import visible
from lastword.errors import ConfigError as ConfigError
from lastword.errors import LastWordError as LastWordError
from lastword.errors import StoreError as StoreError
from lastword.errors import did_you_mean as did_you_mean
from lastword.journal import Journal, open_default_journal, timeline
from lastword.store import StoreAddress, data_folder

# What a person alone may start is refused below a tool or an agent: each command says so before it opens anything.
from lastword.tools.guard import is_below as is_below
from lastword.tools.guard import note_agent as note_agent
from lastword.tools.guard import refuse_below as refuse_below

if TYPE_CHECKING:
    from lastword.script import PlacedError
    from lastword.tools import Manifest, Unagreed

log = logging.getLogger("lastword")

# A notice is read in passing.
MAX_NAMED = 6
WHO = Answerer.person(where="command")
BY = str(WHO)

WITHOUT_TOKENS = "`lastword serve` is open to this machine only, `lastword up` to itself alone"
AUTO_APPROVE = "--auto-approve"
NOT_BY_ITSELF = "leave it out; with --wait a person answers its card elsewhere, and a rule of theirs may allow it"


def _store_option(words: str) -> Callable[[Any], Any]:
    return click.option("--store", metavar="URL", callback=lambda context, parameter, url: check_flag(url), help=words)


def _turned_by_a_person(context: click.Context, parameter: click.Parameter, given: bool) -> bool:
    """The key of a preset is the person's: what an assistant runs does not turn it for itself."""
    if given:
        refuse_below(AUTO_APPROVE, hint=NOT_BY_ITSELF)
    return given


class CommandOption:
    """What can be said to more than one command."""

    tools = click.option(
        "--tools",
        "folders",
        multiple=True,
        metavar="DIR",
        help="A tool folder, or a folder of them; may be repeated. Default: tools/ in the current folder.",
    )
    plain = click.option("--plain", is_flag=True, help="Flat text and words instead of keys, for screen readers.")
    store = _store_option(
        "The store to use: sqlite:///FILE, postgresql://…, or memory: to keep nothing. Default: your own."
    )
    server_store = _store_option("Where records are kept: sqlite:///FILE, postgresql://… or memory:")
    auto_approve = click.option(
        AUTO_APPROVE,
        is_flag=True,
        callback=_turned_by_a_person,
        help="Approve without asking, for tools that also allow it.",
    )
    wait = click.option(
        "--wait",
        is_flag=True,
        help="Let a card wait until somebody answers it elsewhere, with lastword answer in any terminal.",
    )
    project = click.option(
        "--project",
        metavar="DIR",
        help="A project folder. Adds the editor's own tools, and gives an editor to tools that need one.",
    )
    editor = click.option("--editor", is_flag=True, help="Add the editor's own tools, as --project does.")
    apply = click.option("--apply", metavar="SHA256", help="Make the change without asking, if this is its digest.")
    config = click.option(
        "--config", type=click.Path(path_type=Path), metavar="FILE", help="Default: lastword.toml in this folder."
    )
    json = click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")


T = TypeVar("T")


def read_config(path: Path | None = None, flags: Mapping[str, Any] | None = None) -> Config:
    """The configuration of a command. What does not count in it is said."""
    config = load_config(path, flags)
    if config.laid_aside:
        complain(laid_aside_words(config))
    return config


def load_config(path: Path | None = None, flags: Mapping[str, Any] | None = None) -> Config:
    """The same for whoever says in another way what does not count, or needs nothing that could be left out."""
    return load(path, environ=os.environ, flags=flags)


def configured_memory() -> tuple[str | None, People]:
    """The store that LASTWORD_STORE or lastword.toml names, and whose it is: for commands that want nothing else."""
    config = load_config()
    return config.server.store, people_of(config)


def people_of(config: Config) -> People:
    """Who sits here, and who may answer for whom."""
    answers = {who: tuple(whose) for who, whose in config.people.answer.items()}
    return People(config.people.me, answers)


def laid_aside_words(config: Config) -> str:
    """Which settings of a found file do not count, and what to type."""
    named = ", ".join(config.laid_aside[:MAX_NAMED])
    more = f" and {len(config.laid_aside) - MAX_NAMED} more" if len(config.laid_aside) > MAX_NAMED else ""
    if config.preset:  # It was accepted, and its presets are there.
        return (
            f"{config.file}: a tool or an agent started this, so this does not count: {named}{more}\n"
            "hint: a preset auto-approves in conversations that you start yourself"
        )
    return (
        f"{config.file}: it was found here and you have not accepted it, so this does not count: {named}{more}\n"
        "hint: lastword trust shows it and asks you"
    )


def check_flag(address: str | None) -> str | None:
    """Refuse an address with a password in it that was typed on a command line: everybody can list those."""
    if address is not None and StoreAddress(address).holds_password:
        raise ConfigError(
            "a password on the command line can be read by everybody on this machine",
            place="--store",
            hint="put it into ~/.pgpass, PGPASSWORD or LASTWORD_STORE, and leave it out of the address",
        )
    return address


def data_file(name: str = StoreAddress.DEFAULT_FILE) -> Path:
    """The store that is used when none is configured, or a file beside it."""
    return data_folder() / name


def store_address(config: Config) -> StoreAddress:
    """The configured store, or the one in the user's data folder."""
    return StoreAddress(config.server.store or f"sqlite:///{data_file()}")


@asynccontextmanager
async def remembering(store: str | None) -> AsyncIterator[Journal]:
    """The memory of a command. What it could not keep is said, beside whatever the command itself has to say."""
    configured, people = configured_memory()
    journal = open_default_journal(store or configured)
    journal.people = people
    try:
        yield journal
    except BaseException:
        try:
            await journal.close()
        except StoreError as problem:
            # What the command itself failed of is told; this may be why, and stands beside it in the log.
            log.info("the journal could not be closed: %s", problem)
        raise
    try:
        await journal.close()
    except StoreError as problem:
        complain(str(problem))


def with_own_journal(store: str | None, place: str, work: Callable[[Journal], Awaitable[T]]) -> T:
    """The same for what a person decides: refused below a program in which tools run."""

    async def do(journal: Journal) -> T:
        refuse_below(place, journal.store)
        return await work(journal)

    refuse_below(place)  # before anything is opened, or made
    return with_journal(store, do)


def with_journal(store: str | None, work: Callable[[Journal], Awaitable[T]]) -> T:
    """Open the memory, do something with it, and close it again."""

    async def do() -> T:
        async with remembering(store) as journal:
            return await work(journal)

    return asyncio.run(do())


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_list(found: Sequence[Any], as_json: bool, show: Callable[[Any], None], *, after: str = "", none: str) -> int:
    """What a command found, as JSON or one by one, and what to do with it; or that there is nothing."""
    if as_json:
        print_json(found)
        return DONE
    for each in found:
        show(each)
    if words := after if found else none:
        click.echo(words)
    return DONE


def say(words: str, *, err: bool = False, fits: bool = False) -> None:
    """Print it. What others wrote in it is marked: a terminal must not obey them. What `fits` breaks between words."""
    words = visible(words)
    click.echo(terminal.fitted(words, sys.stderr if err else sys.stdout) if fits else words, err=err)


def hand_out(text: str, *, err: bool = False) -> None:
    """Print what a tool or a script gave. A program may want the bytes; a terminal must not obey them."""
    click.echo(visible(text) if (sys.stderr if err else sys.stdout).isatty() else text, err=err)


NOT_DONE = "Nothing was done."


def by_a_person(place: str) -> None:
    """Refuse what a tool, or something that a tool started, asks for."""
    refuse_below(place)
    refuse_below(place, open_default_journal().store)


def agreed(question: str, given: str | None, exactly: str, option: str, word: str = "yes") -> bool:
    """Whether the person says yes, or whoever wrote the script named exactly this."""
    if given is not None:
        if given.casefold() == exactly:
            return True
        raise Misused(f"it is another: {exactly}", place=option, hint="look at it; nothing was done")
    say(question, err=True, fits=True)
    if not terminal.is_interactive():
        complain(
            "nobody is here to read this, so nothing was done\n"
            f"hint: the same in a terminal asks; for a script: {option} {exactly}"
        )
        return False
    return typed_out(f"Type {word} or no, and press Enter", word)


def typed_out(question: str, word: str) -> bool:
    """Whether the person at this terminal typed exactly this word."""
    terminal.settle(sys.stdin)  # what was typed before the question answers nothing
    said = click.prompt(question, err=True, type=str)
    if said.strip().casefold() != word.casefold():
        click.echo(NOT_DONE, err=True)
        return False
    return True


def check_seen(given: str | None, exactly: str | None, place: str) -> None:
    """Refuse when somebody says which card they have read, and another one waits."""
    if given is not None and given.strip().casefold() != exactly:
        raise Misused(
            "that is not the digest of this card: it was asked again since, or you have read another",
            place="--digest",
            hint=f"{place} shows what it is now; nothing was done",
        )


def is_again_meant(call_id: str, tool: str) -> bool:
    """Whether a call in doubt shall really run once more. Nobody knows whether it happened, so this takes two acts."""
    if not terminal.is_interactive():
        raise Misused(
            "it may be the second time that this happens, and one act does not start it again",
            place="lastword resolve",
            hint=f"read its card in lastword show {call_id} --json, and say which one you have read: --digest DIGEST",
        )
    name = visible(tool)
    say("It may be the second time that this happens.", err=True, fits=True)
    return typed_out(f"Type the name of the tool, {name}, to run it once more, or no, and press Enter", name)


async def tell_life(journal: Journal, call_id: str, of: str = "", *, err: bool = False) -> None:
    """Print what is remembered of a call. `of`: what need not be said of each line, as in `timeline`."""
    for line in timeline(await journal.store.read(subject=call_id), of=of):
        click.echo(line, err=err)


def typed_arguments(manifest: Manifest, pairs: Sequence[str], json_args: str | None = None) -> dict[str, Any]:
    """The arguments of a call: NAME=VALUE as somebody typed them, and --json-args."""
    return card.read_arguments(manifest, pairs, {} if json_args is None else _object(json_args))


def _object(text: str) -> dict[str, Any]:
    place, hint = "--json-args", 'for instance --json-args \'{"name": "you"}\''
    try:
        value = values.parse(text)
    except values.NotJSON as problem:
        place = f"{place}:{problem.place}" if problem.place else place
        raise Misused(problem.fact, place=place, hint=problem.hint or hint) from None
    if not isinstance(value, dict):
        raise Misused(f"found {values.type_name[type(value)]}, expected an object", place=place, hint=hint)
    return value


def arguments_line(hidden: Any) -> str:
    """The arguments of a call in a line, from how they are remembered."""
    return card.summary_of(Secrets.unhidden(hidden)) or "no arguments"


def digest_of(facts: Any) -> str:
    """What names exactly these facts to `agreed`."""
    return values.digest(values.canonical(facts))


def typed_json(text: str, place: str, hint: str) -> Any:
    """The value that somebody typed as JSON."""
    try:
        return values.parse(text)
    except values.NotJSON as problem:
        raise Misused(problem.fact, place=place, hint=hint) from None


def one_of(place: str, **flags: bool) -> Any:
    """The one word that was said, if any. Two contradict each other, and neither may win by chance."""
    said = [name for name, is_said in flags.items() if is_said]
    if len(said) > 1:
        both = " and ".join(f"--{name}" for name in said)
        raise Misused(f"{both} contradict each other", place=place, hint="say one of them; nothing was changed")
    return said[0] if said else None


RIGHTS = "It would run with all the rights of your account."

Agreed = Literal["yes", "always", "no"]


def trust_asker() -> Callable[[Sequence[Unagreed]], list[Agreed]] | None:
    """Whom to ask whether found code may run: the person at this terminal, or nobody."""
    return ask_trust if terminal.is_interactive() else None


def ask_trust(questions: Sequence[Unagreed]) -> list[Agreed]:
    """Ask whether code that was found here may run. Only a whole word agrees; one word is enough for all."""
    if len(questions) > 1:
        for question in questions:
            _show(question)
        count = f"all {len(questions)}"
        words = f"{RIGHTS} Type all to run the code of {count}, one to be asked about each by itself, or no, and"
        say(f"{words} press Enter.", err=True, fits=True)
        word = typed_word(f"Run the code of {count}", ("all", "one", "no"))
        if word != "one":
            return ["yes" if word == "all" else "no"] * len(questions)
    answers: list[Agreed] = []
    for question in questions:
        # Until the first no: without all of its tools nothing starts.
        answers.append("no" if "no" in answers else _ask_one(question))
    return answers


def _ask_one(question: Unagreed) -> Agreed:
    _show(question)
    words = f"{RIGHTS} Type yes to run this code, always to trust this folder also when its code changes, or no, and"
    say(f"{words} press Enter.", err=True, fits=True)
    return typed_word("Run it", ("yes", "always", "no"))


def _show(question: Unagreed) -> None:
    folder = question.found.folder
    if question.is_changed:
        say(f"The code in {folder} has changed since you agreed to run it.", err=True)
    else:
        say(f"The code in {folder} was found here. You have not agreed to run it yet.", err=True)
    for file in folder.files():
        say(f"  {file}", err=True)


Word = TypeVar("Word", bound=str)


def typed_word(question: str, words: Sequence[Word]) -> Word:
    """One of these words, whole."""
    terminal.settle(sys.stdin)  # what was typed before the question answers nothing
    while True:
        answer = click.prompt(question, err=True, type=str, prompt_suffix="? ").strip().casefold()
        for word in words:
            if answer == word:
                return word
        click.echo(f"Please type {', '.join(words[:-1])} or {words[-1]}.", err=True)


def typed_secret(question: str) -> str:
    """What is typed without being shown, or a line of standard input."""
    if terminal.is_interactive():
        return str(click.prompt(question, hide_input=True, err=True))
    return sys.stdin.readline().rstrip("\n")


def read_script(file: str) -> tuple[str, str | None]:
    """The text of a script, and what to call it in an error."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig"), None if file == "-" else Path(file).name
    except OSError as problem:
        raise Misused(f"it cannot be read: {problem.strerror}", place=file) from None
    except UnicodeDecodeError as problem:
        raise Misused(f"it is not UTF-8 (byte {problem.start})", place=file, hint="save it as UTF-8") from None


def say_problems(problems: Sequence[PlacedError]) -> None:
    for problem in problems:
        shown = visible(str(problem))
        click.echo(f"warning: {shown}" if problem.severity == "warning" else shown, err=True)
