"""``reservoir serve``: a proxy that adds memory, a web page, and MCP over HTTP."""
