"""LiteLLM: one function for all three APIs that the server speaks; streams, tools, errors."""

import json
import os
import sys

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # prices are not fetched at every start
import litellm  # noqa: E402

litellm.suppress_debug_info = True
URL = os.environ.get("LUTRA_URL", "http://127.0.0.1:8080")
KEY = os.environ.get("LUTRA_API_KEY", "none")
MODEL = os.environ.get("LUTRA_MODEL", "lutra-tiny-l")
QUESTION = {"role": "user", "content": "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"}

# The word before the slash is the API that LiteLLM speaks, and where that begins.
OPENAI = {"model": "openai/" + MODEL, "api_base": URL + "/v1", "api_key": KEY}
OTHERS = (
    {"model": "anthropic/" + MODEL, "api_base": URL, "api_key": KEY},
    {"model": "ollama_chat/" + MODEL, "api_base": URL, "api_key": KEY},
)


def check(right, what):
    """Ends the program if an answer has not the shape it should have."""
    if not right:
        sys.exit(f"unexpected: {what}")


def chat():
    for api in (OPENAI, *OTHERS):
        answer = litellm.completion(messages=[QUESTION], temperature=0, max_tokens=200, **api)
        check(answer.choices[0].message.content and answer.usage.completion_tokens > 0, answer)
        print(api["model"], "answers", repr(answer.choices[0].message.content))


def stream():
    for api in (OPENAI, *OTHERS):
        chunks = list(litellm.completion(messages=[QUESTION], temperature=0, max_tokens=200, stream=True, **api))
        answer = litellm.stream_chunk_builder(chunks)
        check(len(chunks) > 2 and answer.choices[0].message.content, answer)
        print(api["model"], "streams", len(chunks), "chunks")


MULTIPLY = {
    "type": "function",
    "function": {
        "name": "multiply",
        "description": "The product of two whole numbers.",
        "parameters": {
            "type": "object",
            "properties": {name: {"type": "integer", "minimum": 0, "maximum": 999} for name in ("a", "b")},
            "required": ["a", "b"],
        },
    },
}


def tools():
    # The embedded models have never seen a tool, so the first answer is made a call. Models that know
    # tools decide by themselves: leave tool_choice out.
    asked = {"temperature": 0, "max_tokens": 200, "tools": [MULTIPLY], **OPENAI}
    message = litellm.completion(messages=[QUESTION], tool_choice="required", **asked).choices[0].message
    check(message.tool_calls, message)
    call = message.tool_calls[0]
    arguments = json.loads(call.function.arguments)
    result = {"role": "tool", "tool_call_id": call.id, "content": str(arguments["a"] * arguments["b"])}
    last = litellm.completion(messages=[QUESTION, message.model_dump(), result], tool_choice="none", **asked)
    check(last.choices[0].message.content, last)
    print("tools:", arguments, "then", repr(last.choices[0].message.content))


def errors():
    for api in (OPENAI, *OTHERS):
        try:
            litellm.completion(messages=[QUESTION], max_tokens=200, temperature=-1, **api)
        except litellm.BadRequestError as err:
            check("temperature" in str(err), err)
            print("errors:", str(err).splitlines()[0])
        else:
            check(False, "a temperature below 0")


for example in (chat, stream, tools, errors):
    example()
