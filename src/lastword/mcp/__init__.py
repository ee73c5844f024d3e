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
    from lastword.mcp.client_records import connected_clients as connected_clients
    from lastword.mcp.configured_servers import Inspection as Inspection
    from lastword.mcp.configured_servers import McpServer as McpServer
    from lastword.mcp.configured_servers import McpServers as McpServers
    from lastword.mcp.configured_servers import counted as counted
    from lastword.mcp.gateway import Gateways as Gateways
    from lastword.mcp.permission_tool import PermissionServer as PermissionServer
    from lastword.mcp.secrets import SecretFile as SecretFile
    from lastword.mcp.secrets import sealing_key as sealing_key
    from lastword.mcp.secrets import write_private as write_private
    from lastword.mcp.secrets import write_whole as write_whole
    from lastword.mcp.server_files import JsonSettings as JsonSettings
    from lastword.mcp.server_files import ServerEntries as ServerEntries
    from lastword.mcp.server_files import servers_in as servers_in
    from lastword.mcp.server_trust import Pins as Pins
    from lastword.mcp.server_trust import check_server_name as check_server_name
    from lastword.mcp.server_trust import marked as marked
    from lastword.mcp.tool_server import ToolServer as ToolServer
else:
    __getattr__ = open_door(__name__)
