"""A session's tools as the tools of other frameworks: `pydantic_ai`, `openai_agents`, `langchain`. Each is an extra."""
