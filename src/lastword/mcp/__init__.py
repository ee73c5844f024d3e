"""MCP both ways: the tools of any server behind our cards, and our tools for any client.

Nothing of a server is offered before a person has trusted it, and what they trusted is pinned byte for byte. Every call
goes through a session, and so through the one door. This room alone knows the SDK, and loads it when it is needed.

Servers, whose tools we call:

    server_files         where they are named: lastword.toml, and the files of other programs
    server_trust         what trust is about: how one is reached, and how it defines its tools; what was trusted
    configured_servers   those of a configuration: what is shown of one, and their tools in a registry
    connection           the way to one, over its pipes or HTTP (transports, watchdog)
    server_answers       what one says while a tool of it is called
    secrets              what one is given, and nobody is shown
    gateway              a client's servers behind one entry of ours

Clients, which call our tools:

    tool_server          our tools over stdio and HTTP
    client_messages      what a client is told
    client_records       what is remembered of clients, and of calls that they are owed
    permission_tool      the tool by which Claude Code asks for permission
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.mcp.client_records import connected_clients
    from lastword.mcp.configured_servers import Inspection, McpServer, McpServers, counted
    from lastword.mcp.gateway import Gateways, SettingsFiles
    from lastword.mcp.permission_tool import PermissionServer
    from lastword.mcp.secrets import SecretFile, sealing_key, write_private
    from lastword.mcp.server_files import JsonSettings, ServerEntries, servers_in
    from lastword.mcp.server_trust import Pins, check_server_name, marked
    from lastword.mcp.tool_server import ToolServer
else:
    __getattr__ = open_door(__name__)
