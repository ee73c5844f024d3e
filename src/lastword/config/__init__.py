"""Configuration: `lastword.toml`, then `LASTWORD_*`, then flags. Whatever comes later wins.

    [server]
    upstream = "http://127.0.0.1:11434/v1"
    model = "llama3.2"
    persona = "persona.md"

    [server.limits]
    requests_per_minute = 60

    [preset.careful]
    auto_approve = false
    protocol = "script"

    [editor]
    private = ["*.secret", "keys/"]

    [people]
    me = "ann"
    answer = { lead = ["*"] }

    [mcp.files]
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-filesystem", "."]

A file that was merely found in the current folder may have come with somebody else's project. Of such a file only what
makes things stricter counts (`editor.private`), until the person has accepted it as it is: `lastword trust`. A file
that was named (`--config`, LASTWORD_CONFIG) is meant, unless a tool named it. An MCP server is neither started nor
contacted by the word of any file: it is trusted by itself, as it is shown (mcp/).

A mistake is named with its file, line and field. Paths in the file are meant from the file's own folder. Keys have no
place in the file: it is shared and copied. They come from LASTWORD_UPSTREAM_KEY, or from the file that `key_file`
names.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.config.loader import FILE, MCP_NAME, READ, check_person, is_own_memory, load, trusted
    from lastword.config.settings import (
        Config,
        EditorConfig,
        McpConfig,
        PeopleConfig,
        PresetConfig,
        PresetLimits,
        ServerConfig,
        read_text,
    )
else:
    __getattr__ = open_door(__name__)
