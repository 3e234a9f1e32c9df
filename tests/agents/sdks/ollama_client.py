"""Ask as the ``ollama`` library does: python ollama_client.py URL QUESTION."""

import sys

from ollama import Client

url, question = sys.argv[1:]
client = Client(host=url)
parameters = {"type": "object", "properties": {"question": {"type": "string"}}}
tools = [{"type": "function", "function": {"name": "look", "parameters": parameters}}]
messages = [{"role": "user", "content": question}]
print(client.chat(model="m", messages=messages).message.content)
reply = None
for part in client.chat(model="m", messages=messages, tools=tools, stream=True):
    reply = part.message if part.message.tool_calls else reply
[call] = reply.tool_calls
messages += [reply.model_dump(exclude_none=True), {"role": "tool", "content": "42"}]
parts = client.chat(model="m", messages=messages, tools=tools, stream=True)
print("".join(part.message.content or "" for part in parts))
