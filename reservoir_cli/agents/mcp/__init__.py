"""The MCP server: four tools for agents, over stdin and stdout.

``tools`` describes the tools, checks their arguments and answers calls from a store, which
``unload_when_idle`` closes after a while, ``server`` implements the protocol, and ``stdio`` is its
transport. Only ``run``, ``server`` and ``stdio`` import the SDK, which takes half
a second.
"""
