"""Ask as LangChain does: python langchain_client.py URL QUESTION."""

import sys

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def look(question: str) -> str:
    """Look it up."""
    return "42"


url, question = sys.argv[1:]
for model in (
    ChatOpenAI(base_url=f"{url}/v1", api_key="x", model="m"),
    ChatAnthropic(base_url=url, api_key="x", model="m"),
):
    messages = [HumanMessage(question)]
    print(model.invoke(messages).text)
    bound = model.bind_tools([look])
    reply = None
    for chunk in bound.stream(messages):
        reply = chunk if reply is None else reply + chunk
    [call] = reply.tool_calls
    messages += [reply, ToolMessage(look.invoke(call["args"]), tool_call_id=call["id"])]
    print("".join(chunk.text for chunk in bound.stream(messages)))
