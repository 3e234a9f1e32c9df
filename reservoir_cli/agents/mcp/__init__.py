"""The MCP server: four tools for agents, over stdin and stdout.

``tools`` describes the tools, checks their arguments and answers calls from a store, ``server``
implements the protocol, and ``stdio`` is its transport. Only the latter two import the SDK, which
takes half a second.
"""
