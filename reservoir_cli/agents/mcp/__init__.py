"""The MCP server: four tools for agents, over stdin and stdout.

``tools`` describes the tools and checks what they are called with, ``answers`` answers a call from
a store, ``server`` speaks the protocol, and ``stdio`` carries it. Only ``server`` and ``stdio``
import the SDK, which takes half a second.
"""
