"""For those who write tools: `AssistantTool`, and the test functions of tools."""
