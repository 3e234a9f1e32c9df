"""Ask as the ``openai`` library does: python openai_client.py URL QUESTION; prints the answers."""

import sys

from openai import OpenAI

url, question = sys.argv[1:]
client = OpenAI(base_url=f"{url}/v1", api_key="x")
parameters = {"type": "object", "properties": {"question": {"type": "string"}}}
tool = {"type": "function", "function": {"name": "look", "parameters": parameters}}
print(client.responses.create(model="m", input=question).output_text)
with client.responses.stream(model="m", input=question) as stream:
    events = {event.type for event in stream}
    print(next(item for item in stream.get_final_response().output).content[0].text)
assert "response.completed" in events
messages = [{"role": "user", "content": question}]
print(client.chat.completions.create(model="m", messages=messages).choices[0].message.content)
with client.chat.completions.stream(model="m", messages=messages, tools=[tool]) as stream:
    reply = stream.get_final_completion().choices[0].message
[call] = reply.tool_calls
messages += [
    {
        "role": "assistant",
        "content": reply.content,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
        ],
    },
    {"role": "tool", "tool_call_id": call.id, "content": "42"},
]
stream = client.chat.completions.create(model="m", messages=messages, tools=[tool], stream=True)
print("".join(chunk.choices[0].delta.content or "" for chunk in stream))
