"""MCP both ways: the tools of any server behind our cards, and our tools for any client."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.mcp.clients import connected as connected
    from lastword.mcp.definitions import Definition as Definition
    from lastword.mcp.definitions import marked as marked
    from lastword.mcp.entries import add_entry as add_entry
    from lastword.mcp.entries import change_own as change_own
    from lastword.mcp.entries import remove_entry as remove_entry
    from lastword.mcp.foreign import servers_in as servers_in
    from lastword.mcp.foreign import without_comments as without_comments
    from lastword.mcp.gateway import Gateways as Gateways
    from lastword.mcp.launch import Launch as Launch
    from lastword.mcp.looking import Sighting as Sighting
    from lastword.mcp.looking import change_lines as change_lines
    from lastword.mcp.looking import changed_tools as changed_tools
    from lastword.mcp.looking import look_at as look_at
    from lastword.mcp.looking import rights_of as rights_of
    from lastword.mcp.looking import shown_tool as shown_tool
    from lastword.mcp.looking import way_lines as way_lines
    from lastword.mcp.looking import way_of as way_of
    from lastword.mcp.names import check_server_name as check_server_name
    from lastword.mcp.names import tool_id as tool_id
    from lastword.mcp.offered import McpServer as McpServer
    from lastword.mcp.offered import McpServers as McpServers
    from lastword.mcp.offered import counted as counted
    from lastword.mcp.offered import servers_of as servers_of
    from lastword.mcp.pins import Pinned as Pinned
    from lastword.mcp.pins import Pins as Pins
    from lastword.mcp.rewriting import shown_change as shown_change
    from lastword.mcp.rewriting import with_value as with_value
    from lastword.mcp.rewriting import write_whole as write_whole
    from lastword.mcp.seal_key import sealing_key as sealing_key
    from lastword.mcp.secrets import SecretFile as SecretFile
    from lastword.mcp.secrets import write_private as write_private
    from lastword.mcp.serving import ToolServer as ToolServer
else:
    __getattr__ = open_door(
        __name__,
        clients="connected",
        definitions="Definition marked",
        entries="add_entry change_own remove_entry",
        foreign="servers_in without_comments",
        gateway="Gateways",
        launch="Launch",
        looking="Sighting change_lines changed_tools look_at rights_of shown_tool way_lines way_of",
        names="check_server_name tool_id",
        offered="McpServer McpServers counted servers_of",
        pins="Pinned Pins",
        rewriting="shown_change with_value write_whole",
        seal_key="sealing_key",
        secrets="SecretFile write_private",
        serving="ToolServer",
    )
