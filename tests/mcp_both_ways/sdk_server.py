"""A server made with the SDK, which speaks both eras of the protocol: over stdio, or HTTP with a port as argument."""

import asyncio
import os
import sys

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

FORM = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
MONEY = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}


async def list_tools(context, params):
    tools = [
        types.Tool(name="pay", description="Pays.", input_schema=MONEY, output_schema=MONEY),
        types.Tool(name="travel", description="Asks where to.", input_schema={"type": "object"}),
        types.Tool(name="who", description="Says what it was told.", input_schema={"type": "object"}),
        types.Tool(name="die", description="Dies.", input_schema={"type": "object"}),
    ]
    return types.ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")


def said(words, **more):
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], **more)


async def call_tool(context, params):
    if params.name == "pay":
        return said("paid", structured_content={"amount": params.arguments["amount"]})
    if params.name == "die":
        os._exit(9)
    if params.name == "who":
        headers = {} if context.request is None else dict(context.request.headers)
        return said(f"{context.protocol_version} {headers.get('authorization', '')}")
    if context.protocol_version >= "2026-07-28":
        answer = (params.input_responses or {}).get("where")
        if answer is None:
            form = types.ElicitRequest(params=types.ElicitRequestFormParams(message="Where to?", requested_schema=FORM))
            return types.InputRequiredResult(input_requests={"where": form}, request_state="asked")
    else:
        answer = await context.session.elicit_form("Where to?", FORM, context.request_id)
    return said(f"{answer.action} {answer.content}")


async def main():
    server = Server("sdk", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    if len(sys.argv) > 1:
        app = server.streamable_http_app()
        await uvicorn.Server(uvicorn.Config(app, port=int(sys.argv[1]), log_level="warning")).serve()
    else:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


asyncio.run(main())
