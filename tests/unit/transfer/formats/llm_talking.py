"""Run commands of ``llm`` with a scripted model, by the Python of an environment that has it.

Each line of stdin has the arguments of one ``llm`` command, as a JSON array. Nothing of
Reservoir is imported here, and nothing touches the network.
"""

import json
import os
import sys

import llm
from llm.cli import cli
from llm.plugins import pm

try:
    from llm.parts import StreamEvent
except ImportError:  # before 0.32 a model could not return its thinking
    StreamEvent = None


class Scripted(llm.Model):
    """A model that calls each of its tools once, then answers."""

    model_id = "scripted"
    can_stream = False
    supports_tools = True
    attachment_types = frozenset({"image/png"})

    def execute(self, prompt, stream, response, conversation):
        if prompt.tools and not prompt.tool_results:
            for number, tool in enumerate(prompt.tools, 1):
                arguments = {"what": "pelican"}
                call = llm.ToolCall(tool.name, arguments, tool_call_id=f"call_{number}")
                response.add_tool_call(call)
            return
        if prompt.tool_results:
            yield " and ".join(result.output for result in prompt.tool_results)
            return
        question = (prompt.prompt or "").splitlines()[-1]
        if StreamEvent and "think" in question:
            yield StreamEvent(type="reasoning", chunk="It has a beak.")
            yield StreamEvent(type="text", chunk=f"Thoughts on: {question}")
        else:
            yield f"Answer to: {question}"


class Plugin:
    """The hooks of a plugin."""

    @staticmethod
    @llm.hookimpl
    def register_models(register):
        """Register the model."""
        register(Scripted())

    @staticmethod
    @llm.hookimpl
    def register_tools(register):
        """Register a tool that returns text, and one that returns a picture."""

        def measure(what: str) -> str:
            return f"{what}: 1.5 m"

        def photograph(what: str) -> llm.ToolOutput:
            picture = llm.Attachment(type="image/png", content=b"\x89PNG\r\n\x1a\n" + what.encode())
            return llm.ToolOutput(output="click", attachments=[picture])

        register(measure)
        register(photograph)


pm.register(Plugin(), name="scripted")
commands = [json.loads(line) for line in sys.stdin]
sys.stdin = open(os.devnull, encoding="utf-8")  # llm would add stdin to the prompt
for arguments in commands:
    cli.main(args=arguments, standalone_mode=False)
