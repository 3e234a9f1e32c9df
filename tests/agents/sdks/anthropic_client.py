"""Ask as the ``anthropic`` library does: python anthropic_client.py URL QUESTION."""

import sys

from anthropic import Anthropic

url, question = sys.argv[1:]
client = Anthropic(base_url=url, api_key="x")
parameters = {"type": "object", "properties": {"question": {"type": "string"}}}
tools = [{"name": "look", "input_schema": parameters}]
messages = [{"role": "user", "content": question}]
print(client.messages.create(model="m", max_tokens=99, messages=messages).content[0].text)
assert client.messages.count_tokens(model="m", messages=messages).input_tokens
with client.messages.stream(model="m", max_tokens=99, messages=messages, tools=tools) as stream:
    reply = stream.get_final_message()
[call] = [block for block in reply.content if block.type == "tool_use"]
result = {"type": "tool_result", "tool_use_id": call.id, "content": "42"}
block = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
messages += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}]
with client.messages.stream(model="m", max_tokens=99, messages=messages, tools=tools) as stream:
    print("".join(stream.text_stream))
