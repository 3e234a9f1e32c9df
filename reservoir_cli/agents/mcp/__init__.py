"""The MCP server: five tools for agents, over stdin and stdout. The SDK takes half a second."""
