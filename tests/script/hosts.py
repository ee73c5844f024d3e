"""A host for scripts in tests: a handful of tools that need nobody's consent."""

from collections.abc import Callable
from typing import Any

from lastword.script import CallFailed, Machine, ScriptLimits, Signature, SignatureParameter, Site, parse
from lastword.script.machine import Result
from lastword.values import plain


def echo(**arguments: Any) -> Any:
    return arguments


def add(a: Any, b: Any) -> Any:
    for number in (a, b):
        if type(number) not in (int, float):
            raise CallFailed("ToolArgument", "add takes two numbers")
    return float(a) + float(b)


def fail() -> Any:
    raise CallFailed("ToolExecution", "boom")


def nothing() -> None:
    return None


def list_up(n: Any) -> Any:
    return list(range(int(n)))


def mutate(list: Any) -> Any:
    list.append(99)
    return len(list)


def get_price(token: str, days: float = 1) -> Any:
    return 100 * days


def read_file(path: str) -> Any:
    return f"the text of {path}"


def write_file(path: str, text: str, mode: str = "w") -> Any:
    return {"success": True, "message": f"wrote {path}"}


def send_message(channel: str, text: str) -> Any:
    return {"success": True, "message": "sent"}


def is_ready() -> bool:
    return True


TOOLS: dict[str, Callable[..., Any]] = {
    "echo": echo,
    "add": add,
    "fail": fail,
    "nothing": nothing,
    "list": list_up,
    "mutate": mutate,
    "get_price": get_price,
    "read_file": read_file,
    "write_file": write_file,
    "send_message": send_message,
    "is_ready": is_ready,
}

SIGNATURES: dict[str, Signature] = {
    signature.name: signature
    for signature in (
        Signature("echo", "Gives back what it gets.", additional=True, returns="object"),
        Signature(
            "get_price",
            "The price of a token in US dollars.",
            (
                SignatureParameter("token", "string", "Its ticker, like BTC."),
                SignatureParameter(
                    "days", "number", "How many days back.", required=False, schema={"minimum": 1, "maximum": 30}
                ),
            ),
            "number",
        ),
        Signature("read_file", "Reads a text file.", (SignatureParameter("path", "string", "Where it is."),), "string"),
        Signature(
            "write_file",
            "Writes a text file.",
            (
                SignatureParameter("path", "string", "Where to write."),
                SignatureParameter("text", "string", "What to write."),
                SignatureParameter(
                    "mode", "string", "w replaces, a adds.", required=False, schema={"enum": ["w", "a"], "default": "w"}
                ),
            ),
            "object",
            needs_person=True,
            effect="changes a file",
            display_name="Write file",
            reports=True,
        ),
        Signature(
            "send_message",
            "Sends a message to a channel.",
            (
                SignatureParameter("channel", "string", "Which channel."),
                SignatureParameter("text", "string", "What to say."),
            ),
            "object",
            needs_person=True,
            display_name="Send message",
            reports=True,
        ),
        Signature("is_ready", "Whether everything is in place.", (), "boolean"),
    )
}


KINDS = {"ToolExecution": "raised", "ToolArgument": "invalid_arguments"}
"""What the door calls the failures that a TRY CALL is told of."""


def tried(kind: str, message: str, value: Any) -> dict[str, Any]:
    """What a TRY CALL gives."""
    return {"success": kind == "succeeded", "message": message, "value": value, "kind": kind}


class TestHost:
    """Answers CALLs from a table of Python functions, and remembers what was asked, in order."""

    __test__ = False

    def __init__(self, tools: dict[str, Callable[..., Any]] | None = None, *, waits: bool = False) -> None:
        self.tools = TOOLS if tools is None else tools
        self.waits = waits
        self.lines: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.sites: list[Site] = []
        self.clock = 1_700_000_000_000

    def lookup(self, name: str) -> Callable[[dict[str, Any], Site], Any]:
        if name not in self.tools:
            raise CallFailed("ToolNotFound", f"unknown tool {name}")
        tool = self.tools[name]

        def carry_out(arguments: dict[str, Any], site: Site) -> Any:
            given = plain(arguments)
            self.calls.append((name, plain(given)))
            self.sites.append(site)
            try:
                value = tool(**given)
            except TypeError as problem:
                failure = CallFailed("ToolArgument", str(problem))
            except CallFailed as problem:
                failure = problem
            else:
                return tried("succeeded", "done", value) if site.tries else value
            if not site.tries:
                raise failure
            return tried(KINDS[failure.error_class], failure.message, None)

        async def carry_out_later(arguments: dict[str, Any], site: Site) -> Any:
            return carry_out(arguments, site)

        return carry_out_later if self.waits else carry_out

    def now(self) -> int:
        self.clock += 1
        return self.clock

    def printed(self, line: str) -> None:
        self.lines.append(line)


async def run(
    text: str, host: TestHost | None = None, variables: dict[str, Any] | None = None, limits: ScriptLimits | None = None
) -> Result:
    """Parse and run a text; an error of the text is raised, one of the run is in the result."""
    return await Machine(parse(text), host or TestHost(), variables, limits).run()
