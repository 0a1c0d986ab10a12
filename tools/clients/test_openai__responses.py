"""OpenAI's client for Python: responses."""

import asyncio
import json

import openai
import pytest

from conftest import LONG, MODEL, NAMES, PAIR, PIXEL, QUESTION, URL, USER, Estimate

ASK = {"model": MODEL, "input": QUESTION, "temperature": 0, "max_output_tokens": 300}
TOOLS = [{"type": "function", "name": name, "description": name + " two numbers", "parameters": PAIR, "strict": True} for name in NAMES]


@pytest.fixture(scope="session")
def client():
    return openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="session")
def waiting():
    return openai.AsyncOpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="session")
def answer(client):
    return client.responses.create(**ASK)


def test_create(answer):
    assert answer.object == "response" and answer.status == "completed" and answer.error is None
    (message,) = answer.output
    assert message.type == "message" and message.role == "assistant" and answer.output_text == message.content[0].text
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens


def test_messages_as_input(client, answer):
    assert client.responses.create(**ASK | {"input": [USER]}).output_text == answer.output_text
    parts = [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]
    assert client.responses.create(**ASK | {"input": parts}).output_text == answer.output_text


def test_instructions(client, answer):
    more = client.responses.create(**ASK, instructions="Be brief.")
    assert more.instructions == "Be brief." and more.usage.input_tokens > answer.usage.input_tokens


def test_stream(client, answer):
    events = list(client.responses.create(**ASK, stream=True))
    assert [e.type for e in events[:2]] == ["response.created", "response.in_progress"] and events[-1].type == "response.completed"
    assert [e.sequence_number for e in events] == list(range(len(events)))
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == answer.output_text
    assert events[-1].response.output_text == answer.output_text


def test_stream_helper(client):
    with client.responses.stream(**ASK, text_format=Estimate) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_response()
    assert {"response.output_text.delta", "response.output_text.done", "response.completed"} <= kinds
    assert isinstance(final.output_parsed, Estimate)


async def test_async(waiting, answer):
    answers = await asyncio.gather(*(waiting.responses.create(**ASK) for _ in range(4)))
    assert {a.output_text for a in answers} == {answer.output_text} and len({a.id for a in answers}) == 4


async def test_async_stream(waiting, answer):
    events = [event async for event in await waiting.responses.create(**ASK, stream=True)]
    assert events[-1].response.output_text == answer.output_text


def test_parse(client):
    assert isinstance(client.responses.parse(**ASK, text_format=Estimate).output_parsed, Estimate)


def test_json_schema(client):
    text = {"format": {"type": "json_schema", "name": "pair", "schema": PAIR, "strict": True}}
    assert set(json.loads(client.responses.create(**ASK, text=text).output_text)) == {"a", "b"}


def test_cut_off(client):
    answer = client.responses.create(**ASK | {"max_output_tokens": 16}, text={"format": {"type": "json_object"}})
    assert answer.status in ("incomplete", "completed")
    if answer.status == "incomplete":
        assert answer.incomplete_details.reason == "max_output_tokens"
    cut = client.responses.create(**ASK | {"max_output_tokens": 2})
    assert cut.status == "incomplete" and cut.incomplete_details.reason == "max_output_tokens"


def test_logprobs(client):
    answer = client.responses.create(**ASK, include=["message.output_text.logprobs"], top_logprobs=2)
    tokens = answer.output[0].content[0].logprobs
    assert tokens and all(len(t.top_logprobs) == 2 for t in tokens)


def test_metadata_and_user(client):
    answer = client.responses.create(**ASK, metadata={"run": "7"}, user="ann", truncation="auto", parallel_tool_calls=False)
    assert answer.metadata == {"run": "7"} and answer.truncation == "auto" and answer.parallel_tool_calls is False


# Tools


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "name": "add"},
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "add"}]},
    ],
)
def test_a_call_is_made(client, choice):
    answer = client.responses.create(**ASK, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False)
    (call,) = answer.output
    assert call.type == "function_call" and call.call_id and call.name in (NAMES if choice == "required" else ["add"])
    assert set(json.loads(call.arguments)) == {"a", "b"}


def test_results_of_tools(client):
    first = client.responses.create(**ASK, tools=TOOLS, tool_choice="required")
    results = [{"type": "function_call_output", "call_id": call.call_id, "output": "84"} for call in first.output]
    kept = client.responses.create(**ASK | {"input": results}, tools=TOOLS, tool_choice="none", previous_response_id=first.id)
    sent = client.responses.create(**ASK | {"input": [USER, *first.output, *results]}, tools=TOOLS, tool_choice="none")
    assert kept.output_text and kept.output_text == sent.output_text and kept.usage.input_tokens == sent.usage.input_tokens


def test_calls_streamed(client):
    events = list(client.responses.create(**ASK, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, stream=True))
    (done,) = [e for e in events if e.type == "response.function_call_arguments.done"]
    assert "".join(e.delta for e in events if e.type == "response.function_call_arguments.delta") == done.arguments
    assert events[-1].response.output[0].arguments == done.arguments


def test_custom_tool(client):
    tool = {"type": "custom", "name": "code", "format": {"type": "grammar", "syntax": "regex", "definition": "[a-c]{3}"}}
    (call,) = client.responses.create(**ASK, tools=[tool], tool_choice="required", parallel_tool_calls=False).output
    assert call.type == "custom_tool_call" and len(call.input) == 3 and set(call.input) <= set("abc")


# What is kept


def test_previous_response(client, answer):
    second = client.responses.create(**ASK | {"input": "And 3 more?"}, previous_response_id=answer.id)
    assert second.previous_response_id == answer.id and second.usage.input_tokens > answer.usage.input_tokens


def test_item_reference(client, answer):
    items = [{"type": "item_reference", "id": answer.output[0].id}, {"role": "user", "content": "And 3 more?"}]
    assert client.responses.create(**ASK | {"input": items}).output_text


def test_retrieve(client, answer):
    assert client.responses.retrieve(answer.id).output == answer.output


def test_retrieve_streamed(client, answer):
    events = list(client.responses.retrieve(answer.id, stream=True))
    assert events[-1].response.output_text == answer.output_text
    later = list(client.responses.retrieve(answer.id, stream=True, starting_after=events[1].sequence_number))
    assert [e.sequence_number for e in later] == [e.sequence_number for e in events[2:]]


def test_input_items(client):
    asked = client.responses.create(
        **ASK | {"input": [USER, {"role": "assistant", "content": "84"}, {"role": "user", "content": "And 3 more?"}]}
    )
    items = list(client.responses.input_items.list(asked.id, limit=1, order="asc"))  # the client asks for page after page
    assert [item.role for item in items] == ["user", "assistant", "user"] and items[0].content[0].text == QUESTION
    assert [item.id for item in client.responses.input_items.list(asked.id)] == [item.id for item in reversed(items)]


def test_delete(client):
    one = client.responses.create(**ASK)
    client.responses.delete(one.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(one.id)
    with pytest.raises(openai.BadRequestError) as err:
        client.responses.create(**ASK, previous_response_id=one.id)
    assert err.value.param == "previous_response_id"


def test_not_stored(client):
    one = client.responses.create(**ASK, store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(one.id)


def test_cancel(client):
    with client.responses.create(
        **ASK | {"max_output_tokens": 900, "temperature": 2},
        text={
            "format": {
                "type": "json_schema",
                "name": "s",
                "schema": {"type": "object", "properties": {"text": {"type": "string", "minLength": 2000}}, "required": ["text"]},
            }
        },
        stream=True,
    ) as stream:
        events = iter(stream)
        first = next(events)
        assert client.responses.cancel(first.response.id).status == "cancelled"
        list(events)
    assert client.responses.retrieve(first.response.id).status == "cancelled"


def test_input_tokens(client, answer):
    counted = client.responses.input_tokens.count(model=MODEL, input=QUESTION)
    assert counted.input_tokens == answer.usage.input_tokens
    assert client.responses.input_tokens.count(model=MODEL, input=QUESTION, tools=TOOLS).input_tokens > counted.input_tokens


def test_compact(client, answer):
    short = client.responses.compact(model=MODEL, input=[USER, {"role": "assistant", "content": answer.output_text}, USER])
    assert short.output[-1].type == "compaction" and short.output[-1].encrypted_content
    again = [item.model_dump(exclude_none=True) for item in short.output]
    assert client.responses.create(**ASK | {"input": [*again, USER]}).output_text


# Searches and errors


def test_search(client):
    assert client.responses.create(**ASK | {"model": MODEL + "+bon8", "temperature": 0.8}).output_text


@pytest.mark.parametrize(
    "field,value",
    [
        ("temperature", 9),
        ("background", True),
        ("prompt", {"id": "p"}),
        ("max_output_tokens", -1),
        ("input", []),
        ("tools", [{"type": "file_search"}]),
    ],
)
def test_bad_request(client, field, value):
    with pytest.raises(openai.BadRequestError) as err:
        client.responses.create(**ASK | {field: value})
    assert err.value.param.startswith(field) and err.value.request_id


def test_images_are_refused(client):
    image = {"type": "input_image", "image_url": "data:image/png;base64," + PIXEL, "detail": "auto"}
    with pytest.raises(openai.BadRequestError) as err:
        client.responses.create(**ASK | {"input": [{"role": "user", "content": [image]}]})
    assert err.value.param.startswith("input[0]")


def test_long_context(client):
    with pytest.raises(openai.BadRequestError) as err:
        client.responses.create(**ASK | {"input": LONG})
    assert err.value.code == "context_length_exceeded"


def test_not_found(client):
    with pytest.raises(openai.NotFoundError):
        client.responses.create(**ASK | {"model": "absent"})
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve("resp_absent")
