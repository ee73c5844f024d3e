"""MCP both ways: the tools of any server behind our cards, and our tools for any client."""
