"""Run a session with version 1 of the SDK, in an environment of its own.

    python mcp_1_client.py TOOLS COMMAND…

``TOOLS`` is a JSON list of tools and arguments. Prints the results as one JSON document.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    calls, (command, *arguments) = json.loads(sys.argv[1]), sys.argv[2:]
    server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        opened = await session.initialize()
        listed = (await session.list_tools()).tools
        answers = []
        for tool, tool_arguments in calls:
            result = await session.call_tool(tool, tool_arguments)
            (content,) = result.content
            answers.append([content.text, bool(result.isError), result.structuredContent])
    document = {
        "protocol": opened.protocolVersion,
        "instructions": opened.instructions,
        "tools": [tool.name for tool in listed],
        "answers": answers,
    }
    sys.stdout.write(json.dumps(document))


asyncio.run(main())
