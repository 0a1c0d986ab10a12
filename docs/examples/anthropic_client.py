"""Anthropic's Python client: a message, a stream, structure, tools, an edited context, counted tokens, models, errors."""

import os
import sys

import anthropic
from pydantic import BaseModel

MODEL = os.environ.get("LUTRA_MODEL", "default")
GREEDY = {"temperature": 0}  # the client has no parameter for it any more; the server reads it
QUESTION = {"role": "user", "content": "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"}

client = anthropic.Anthropic(
    base_url=os.environ.get("LUTRA_URL", "http://127.0.0.1:8080"),
    api_key=os.environ.get("LUTRA_API_KEY", "none"),
)


def check(right, what):
    """Ends the program if an answer has not the shape it should have."""
    if not right:
        sys.exit(f"unexpected: {what}")


def message():
    answer = client.messages.create(model=MODEL, max_tokens=200, messages=[QUESTION], extra_body=GREEDY)
    check(answer.content[0].type == "text" and answer.stop_reason == "end_turn", answer)
    check(answer.usage.output_tokens > 0, answer.usage)
    print("message:", repr(answer.content[0].text))


def stream():
    with client.messages.stream(
        model=MODEL, max_tokens=200, system="Be brief.", messages=[QUESTION], extra_body=GREEDY
    ) as events:
        pieces = list(events.text_stream)
        answer = events.get_final_message()
    check(len(pieces) > 1 and answer.content[0].text == "".join(pieces), answer)
    print("stream:", len(pieces), "pieces,", answer.usage.output_tokens, "tokens")


class Estimate(BaseModel):
    """What an answer is held to."""

    eggs: int
    sure: bool


def structured():
    answer = client.messages.parse(model=MODEL, max_tokens=200, messages=[QUESTION], output_format=Estimate, extra_body=GREEDY)
    check(isinstance(answer.parsed_output, Estimate), answer)
    print("structured:", answer.parsed_output)


MULTIPLY = {
    "name": "multiply",
    "description": "The product of two whole numbers.",
    "input_schema": {
        "type": "object",
        "properties": {name: {"type": "integer", "minimum": 0, "maximum": 999} for name in ("a", "b")},
        "required": ["a", "b"],
    },
}


def tools():
    # The embedded models have never seen a tool, so the first answer is made a call. Models that know
    # tools decide by themselves: leave tool_choice out.
    first = client.messages.create(
        model=MODEL,
        max_tokens=200,
        messages=[QUESTION],
        tools=[MULTIPLY],
        tool_choice={"type": "any"},
        extra_body=GREEDY,
    )
    call = first.content[-1]
    check(first.stop_reason == "tool_use" and call.type == "tool_use" and call.name == "multiply", first)
    result = call.input["a"] * call.input["b"]
    print(f"tools: multiply({call.input['a']}, {call.input['b']}) = {result}")

    history = [
        QUESTION,
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": str(result)}]},
    ]
    last = client.messages.create(
        model=MODEL,
        max_tokens=200,
        messages=history,
        tools=[MULTIPLY],
        tool_choice={"type": "none"},
        extra_body=GREEDY,
    )
    check(last.content[0].type == "text", last)
    print("tools: the answer is", repr(last.content[0].text))


def tool_stream():
    with client.messages.stream(
        model=MODEL,
        max_tokens=200,
        messages=[QUESTION],
        tools=[MULTIPLY],
        tool_choice={"type": "tool", "name": "multiply"},
        extra_body=GREEDY,
    ) as events:
        kinds = {event.type for event in events}
        call = events.get_final_message().content[-1]
    check("input_json" in kinds and set(call.input) == {"a", "b"}, (kinds, call))
    print("streamed call:", call.input)


def edited():
    # A history with many results of tools is shortened before the model reads it.
    history = [QUESTION]
    for i in range(4):
        call = {"type": "tool_use", "id": f"call_{i}", "name": "multiply", "input": {"a": 12, "b": i}}
        result = {"type": "tool_result", "tool_use_id": f"call_{i}", "content": f"The product of 12 and {i} is {12 * i}. " * 3}
        history += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    edit = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "tool_uses", "value": 3},
        "keep": {"type": "tool_uses", "value": 1},
    }
    answer = client.beta.messages.create(
        model=MODEL,
        max_tokens=20,
        messages=history,
        tools=[MULTIPLY],
        tool_choice={"type": "none"},
        context_management={"edits": [edit]},
        betas=["context-management-2025-06-27"],
        extra_body=GREEDY,
    )
    applied = answer.context_management.applied_edits[0]
    check(applied.cleared_tool_uses == 3 and applied.cleared_input_tokens > 0, applied)
    print("edited:", applied.cleared_tool_uses, "results cleared,", applied.cleared_input_tokens, "tokens saved")


def count():
    tokens = client.messages.count_tokens(model=MODEL, messages=[QUESTION], tools=[MULTIPLY]).input_tokens
    check(tokens > client.messages.count_tokens(model=MODEL, messages=[QUESTION]).input_tokens > 0, tokens)
    print("count_tokens:", tokens, "with the tool")


def models():
    names = [model.id for model in client.models.list()]
    check(names and client.models.retrieve(names[0]).max_tokens > 0, names)
    print("models:", len(names))


def errors():
    try:
        client.messages.create(model=MODEL, max_tokens=0, messages=[QUESTION])
    except anthropic.BadRequestError as err:
        check(err.body["error"]["type"] == "invalid_request_error" and err.request_id, err)
        print("errors:", err.body["error"]["message"])
    else:
        check(False, "no tokens")
    try:
        client.messages.create(model="absent", max_tokens=1, messages=[QUESTION])
    except anthropic.NotFoundError as err:
        check(err.body["error"]["type"] == "not_found_error", err)
    else:
        check(False, "a model that is not there")


for example in (message, stream, structured, tools, tool_stream, edited, count, models, errors):
    example()
