"""Draws bars, and shows them: the result has an image beside its words.

Looking asks nobody; writing a file does. The picture is a PNG made with nothing but zlib, so that this runs anywhere.
"""

import csv
import struct
import zlib
from pathlib import Path
from typing import Any

from lastword import AssistantTool, File, Image, ToolError, ToolResult, UserAction

WIDTH, HEIGHT = 720, 400
LEFT, TOP, RIGHT, BOTTOM = 84, 52, 24, 44
WHITE, INK, GRID, BAR, BEST = b"\xff\xff\xff", b"\x33\x3d\x47", b"\xe3\xe8\xec", b"\x5b\xa3\xa3", b"\x0f\x5c\x5c"
# Letters of three by five dots: an octal digit for each row.
DIGITS = "75557 26227 71747 71717 55711 74717 74757 71122 75757 75717"
A_TO_M = "25755 65656 34443 65556 74647 74644 34553 55755 72227 11152 55655 44447 57755"
N_TO_Z = "75555 25552 65644 25563 65655 34216 72222 55557 55552 55775 55255 55222 71247"
DOTS = f"{DIGITS} {A_TO_M} {N_TO_Z} 00002 00700".split()
LETTERS = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ.-", DOTS, strict=True))


def needs_approval(params: dict[str, Any]) -> bool:
    return "save_as" in params


def request(params: dict[str, Any]) -> dict[str, Any]:
    """Drawn for every call, also for those that the rule lets pass: the journal keeps what would have been shown."""
    name = params.get("save_as")
    if name is None:
        return {"message": f"Draw {params['column']} of {params['file']}?"}
    if Path(name).exists():
        raise ToolError(f"{name} exists already", hint="choose another name")
    return {"message": f"Write the chart of {params['column']} into {name}?", "primary_button_label": "Write file"}


def execute(params: dict[str, Any], user_action: UserAction) -> dict[str, Any] | ToolResult:
    saves = "save_as" in params
    if saves and not user_action.primary_confirmed:
        return {"success": False, "message": "Nothing was written."}
    rows = read(Path(params["file"]), params["column"])
    picture = draw(params["column"], rows)
    best, most = max(rows, key=lambda row: row[1])
    words = f"{params['column']}: {len(rows)} bars, the highest is {best} with {most:g}."
    if saves:
        with Path(params["save_as"]).open("xb") as file:
            file.write(picture)
        words += f" Wrote {params['save_as']}."
    data = "\n".join(f"{label},{value:g}" for label, value in rows)
    return ToolResult(
        {"success": True, "message": words},
        [
            Image(picture, name=f"{params['column']}.png", alt=f"{params['column']}, {rows[0][0]} to {rows[-1][0]}"),
            File(data.encode(), name=f"{params['column']}.csv"),
        ],
    )


def read(path: Path, column: str) -> list[tuple[str, float]]:
    """The first column as labels, the one that is asked for as numbers."""
    if not path.is_file():
        raise ToolError(f"there is no {path}", hint="read_table says what there is")
    with path.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    if not table or column not in table[0]:
        columns = ", ".join(table[0]) if table else "none"
        raise ToolError(f"{path} has no column {column}", hint=f"the columns are {columns}")
    label = next(iter(table[0]))
    try:
        return [(row[label], float(row[column])) for row in table[:24]]
    except ValueError as problem:
        raise ToolError(f"{column} is not made of numbers: {problem}") from None


def draw(title: str, rows: list[tuple[str, float]]) -> bytes:
    """Bars with a scale of round numbers, the highest one darker."""
    top = max(max(value for _, value in rows), 1e-9)
    step = next(s for s in (m * 10.0**e for e in range(-9, 13) for m in (1, 2, 5)) if top / s <= 5)
    canvas = [bytearray(WHITE * WIDTH) for _ in range(HEIGHT)]
    tall = HEIGHT - TOP - BOTTOM

    def fill(x: int, y: int, width: int, height: int, colour: bytes) -> None:
        for line in canvas[max(y, 0) : y + height]:
            line[3 * x : 3 * (x + width)] = colour * width

    def write(text: str, x: int, y: int, dot: int = 2) -> None:
        for place, letter in enumerate(text.upper()):
            for down, row in enumerate(LETTERS.get(letter, "00000")):
                for across in range(3):
                    if int(row) >> (2 - across) & 1:
                        fill(x + dot * (4 * place + across), y + dot * down, dot, dot, INK)

    def long(text: str) -> int:
        return 8 * len(text) - 2

    write(title[:30], LEFT, 18, dot=3)
    for line in range(6):
        value = line * step
        if value > top + step:
            break
        y = TOP + tall - round(tall * value / (top * 1.05))
        if y >= TOP - 4:
            fill(LEFT, y, WIDTH - LEFT - RIGHT, 1, GRID)
            write(f"{value:g}", LEFT - 12 - long(f"{value:g}"), y - 5)
    room = (WIDTH - LEFT - RIGHT) // len(rows)
    for place, (label, value) in enumerate(rows):
        high = max(round(tall * value / (top * 1.05)), 0)
        fill(LEFT + place * room + room // 6, TOP + tall - high, room - room // 3, high, BEST if value == top else BAR)
        short = label[: max(room // 8, 1)]
        write(short, LEFT + place * room + (room - long(short)) // 2, HEIGHT - BOTTOM + 14)
    fill(LEFT, TOP + tall, WIDTH - LEFT - RIGHT, 2, INK)
    return png(canvas)


def png(canvas: list[bytearray]) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(line) for line in canvas), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


AssistantTool.register_needs_approval(needs_approval)
test_approval = AssistantTool.register_approval_request(request)
test_execute = AssistantTool.register_execute_tool_with_approval(execute)
