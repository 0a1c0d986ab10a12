"""OpenAI's Python client: chats, streams, structured answers, tools, vectors, responses, searches."""

import json
import os
import sys

import openai
from pydantic import BaseModel, Field

MODEL = os.environ.get("LUTRA_MODEL", "default")
QUESTION = {"role": "user", "content": "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"}

client = openai.OpenAI(
    base_url=os.environ.get("LUTRA_URL", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ.get("LUTRA_API_KEY", "none"),
)


def check(right, what):
    """Ends the program if an answer has not the shape it should have."""
    if not right:
        sys.exit(f"unexpected: {what}")


def chat():
    answer = client.chat.completions.create(model=MODEL, messages=[QUESTION], temperature=0)
    choice = answer.choices[0]
    check(choice.message.content and choice.finish_reason == "stop", answer)
    check(answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens, answer.usage)
    print("chat:", repr(choice.message.content))


def stream():
    pieces, usage = [], None
    for chunk in client.chat.completions.create(
        model=MODEL, messages=[QUESTION], temperature=0, stream=True, stream_options={"include_usage": True}
    ):
        if chunk.choices:
            pieces.append(chunk.choices[0].delta.content or "")
        usage = chunk.usage or usage
    check(len(pieces) > 1 and "".join(pieces) and usage.completion_tokens > 0, (pieces, usage))
    print("stream:", len(pieces), "chunks,", usage.completion_tokens, "tokens")


class Estimate(BaseModel):
    """What an answer is held to: the server masks every token that would leave it."""

    eggs: int = Field(ge=0, le=999)
    sure: bool


def structured():
    answer = client.chat.completions.parse(
        model=MODEL, messages=[QUESTION], response_format=Estimate, temperature=0, max_tokens=200
    )
    estimate = answer.choices[0].message.parsed
    check(isinstance(estimate, Estimate), answer)
    print("structured:", estimate)


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
    first = client.chat.completions.create(
        model=MODEL, messages=[QUESTION], tools=[MULTIPLY], tool_choice="required", temperature=0, max_tokens=200
    )
    message = first.choices[0].message
    check(first.choices[0].finish_reason == "tool_calls" and message.tool_calls, first)
    call = message.tool_calls[0]
    arguments = json.loads(call.function.arguments)
    check(call.function.name == "multiply" and set(arguments) == {"a", "b"}, call)
    result = arguments["a"] * arguments["b"]
    print(f"tools: multiply({arguments['a']}, {arguments['b']}) = {result}")

    history = [QUESTION, message, {"role": "tool", "tool_call_id": call.id, "content": str(result)}]
    last = client.chat.completions.create(
        model=MODEL, messages=history, tools=[MULTIPLY], tool_choice="none", temperature=0, max_tokens=200
    )
    check(last.choices[0].message.content and not last.choices[0].message.tool_calls, last)
    print("tools: the answer is", repr(last.choices[0].message.content))


def embeddings():
    embedder = next((card.id for card in client.models.list() if getattr(card, "task", "") == "embed"), None)
    if embedder is None:
        print("embeddings: this server has no model for them; serve one beside the others")
        return
    vectors = client.embeddings.create(model=embedder, input=["a hen", "an egg"], dimensions=16).data
    check([len(v.embedding) for v in vectors] == [16, 16], vectors)
    print("embeddings:", len(vectors), "vectors of", len(vectors[0].embedding))


def responses():
    first = client.responses.create(model=MODEL, input=QUESTION["content"], temperature=0)
    check(first.status == "completed" and first.output_text, first)
    second = client.responses.create(
        model=MODEL, input="What is 9 * 8?", previous_response_id=first.id, temperature=0
    )
    check(second.previous_response_id == first.id and second.output_text, second)
    check(second.usage.input_tokens > first.usage.input_tokens, "the second has read the first")
    with client.responses.stream(model=MODEL, input="What is 9 * 8?", text_format=Estimate, temperature=0) as events:
        parsed = events.get_final_response().output_parsed
    check(isinstance(parsed, Estimate), parsed)
    print("responses:", repr(second.output_text), "and", parsed)


def searches():
    """Several candidate answers, decoded together, and the one that a verifier likes best."""
    for plan in (
        {"method": "best_of_n", "n": 4},
        {"method": "beam_search", "n": 4, "width": 2},
    ):
        answer = client.chat.completions.create(
            model=MODEL, messages=[QUESTION], seed=7, max_tokens=200, extra_body={"test_time_scaling": plan}
        )
        # The client keeps fields that it does not know: what the search did, and what it says of a choice.
        search, choice = answer.test_time_scaling, answer.choices[0]
        check(search["method"] == plan["method"] and "score" in choice.test_time_scaling, answer)
        print(f"{search['method']}: {choice.message.content!r}, score {choice.test_time_scaling['score']}")


def errors():
    try:
        client.chat.completions.create(model=MODEL, messages=[QUESTION], temperature=9)
    except openai.BadRequestError as err:
        check(err.param == "temperature" and err.code == "invalid_value" and err.request_id, err)
        print("errors:", err.body["message"])
    else:
        check(False, "a temperature of 9")
    try:
        client.chat.completions.create(model="absent", messages=[QUESTION])
    except openai.NotFoundError as err:
        check(err.code == "model_not_found", err)
    else:
        check(False, "a model that is not there")


for example in (chat, stream, structured, tools, embeddings, responses, searches, errors):
    example()
