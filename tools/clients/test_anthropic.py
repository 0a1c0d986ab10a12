# /// script
# dependencies = ["anthropic", "pytest", "pytest-asyncio", "pytest-timeout"]
# ///
"""Anthropic's client for Python."""

import asyncio
import time
from typing import Literal

import anthropic
import pytest
from pydantic import BaseModel

from conftest import CONTEXT, EMBEDDER, LONG, MODEL, NAMES, PAIR, PIXEL, QUESTION, SLOW, URL, USER

GREEDY = {"temperature": 0}  # no parameter of the client's any more
ASK = {"model": MODEL, "max_tokens": 300, "messages": [USER], "extra_body": GREEDY}
TOOLS = [{"name": name, "description": name + " two numbers", "input_schema": PAIR} for name in NAMES]


class Estimate(BaseModel):
    """What answers are held to. The client makes bounds of numbers a part of their description."""

    unit: Literal["eggs", "boxes"]
    sure: bool


@pytest.fixture(scope="session")
def client():
    return anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)


@pytest.fixture(scope="session")
def waiting():
    return anthropic.AsyncAnthropic(base_url=URL, api_key="none", max_retries=0)


@pytest.fixture(scope="session")
def answer(client):
    return client.messages.create(**ASK)


def text(message):
    return "".join(block.text for block in message.content if block.type == "text")


def test_message(answer):
    assert answer.type == "message" and answer.role == "assistant" and answer.model == MODEL
    assert text(answer) and answer.stop_reason == "end_turn" and answer.stop_sequence is None
    assert answer.usage.output_tokens > 0 and answer.usage.input_tokens + answer.usage.cache_read_input_tokens > 0


def test_system_and_parts(client):
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    parts = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
    a = client.messages.create(**ASK | {"messages": parts}, system=system)
    b = client.messages.create(**ASK, system="Be brief.")
    assert text(a) == text(b)


def test_stream_events(client, answer):
    events = list(client.messages.create(**ASK, stream=True))
    kinds = [e.type for e in events if e.type != "ping"]
    assert kinds[:2] == ["message_start", "content_block_start"] and kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert "".join(e.delta.text for e in events if e.type == "content_block_delta") == text(answer)
    (delta,) = [e for e in events if e.type == "message_delta"]
    assert delta.delta.stop_reason == "end_turn" and delta.usage.output_tokens == answer.usage.output_tokens


def test_stream_helper(client, answer):
    with client.messages.stream(**ASK) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    assert "".join(pieces) == text(final) == text(answer) and len(pieces) > 1


async def test_async(waiting, answer):
    answers = await asyncio.gather(*(waiting.messages.create(**ASK) for _ in range(8)))
    assert {text(a) for a in answers} == {text(answer)}


async def test_async_stream(waiting, answer):
    async with waiting.messages.stream(**ASK) as stream:
        assert "".join([piece async for piece in stream.text_stream]) == text(answer)


def test_stop_reasons(client, answer):
    assert client.messages.create(**ASK | {"max_tokens": 2}).stop_reason == "max_tokens"
    cut = client.messages.create(**ASK, stop_sequences=[text(answer)[5:8]])
    assert cut.stop_reason == "stop_sequence" and cut.stop_sequence == text(answer)[5:8]


def test_several_turns(client, answer):
    turns = [USER, {"role": "assistant", "content": answer.content}, {"role": "user", "content": "And 3 more?"}]
    assert text(client.messages.create(**ASK | {"messages": turns}))


def test_prefilled_answer(client):
    turns = [USER, {"role": "assistant", "content": "The boxes hold"}]
    assert not text(client.messages.create(**ASK | {"messages": turns})).startswith("The boxes hold")


def test_cache_is_counted(client):
    turns = [{"role": "user", "content": "Tom has 7 hens. " * 20 + QUESTION}]
    client.messages.create(**ASK | {"messages": turns})
    usage = client.messages.create(**ASK | {"messages": turns}).usage
    assert usage.cache_read_input_tokens > 0


def test_thinking_is_accepted(client):
    assert text(client.messages.create(**ASK, thinking={"type": "disabled"}))
    assert client.messages.create(**ASK, thinking={"type": "adaptive"}).content


def test_raw_response(client):
    raw = client.messages.with_raw_response.create(**ASK)
    assert raw.headers["request-id"] == raw.parse()._request_id


# Structured answers and tools


def test_parse(client):
    assert isinstance(client.messages.parse(**ASK, output_format=Estimate).parsed_output, Estimate)


def test_parse_streamed(client):
    with client.messages.stream(**ASK, output_format=Estimate) as stream:
        assert isinstance(stream.get_final_message().parsed_output, Estimate)


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "add"}])
def test_a_call_is_made(client, choice):
    answer = client.messages.create(**ASK, tools=TOOLS, tool_choice=choice | {"disable_parallel_tool_use": True})
    (call,) = answer.content
    assert answer.stop_reason == "tool_use" and call.type == "tool_use" and call.id
    assert call.name in (NAMES if choice["type"] == "any" else ["add"]) and set(call.input) == {"a", "b"}


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_no_call_is_demanded(client, choice):
    answer = client.messages.create(**ASK, tools=TOOLS, tool_choice={"type": choice})
    assert text(answer) and (choice == "auto" or answer.stop_reason == "end_turn")


def test_calls_streamed(client):
    with client.messages.stream(**ASK, tools=TOOLS, tool_choice={"type": "any", "disable_parallel_tool_use": True}) as stream:
        pieces = [event.partial_json for event in stream if event.type == "input_json"]
        (call,) = stream.get_final_message().content
    assert "".join(pieces) and set(call.input) == {"a", "b"}


def test_results_of_tools(client):
    first = client.messages.create(**ASK, tools=TOOLS, tool_choice={"type": "any"})
    results = [{"type": "tool_result", "tool_use_id": c.id, "content": "84", "is_error": i > 0} for i, c in enumerate(first.content)]
    turns = [USER, {"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
    assert text(client.messages.create(**ASK | {"messages": turns}, tools=TOOLS, tool_choice={"type": "none"}))


def test_tool_runner(client):
    """The client's own loop: it calls the function and sends its result, once."""

    @anthropic.beta_tool
    def add(a: Literal[1, 2], b: Literal[3, 4]) -> str:
        """The sum of two numbers."""
        called.append((a, b))
        return str(a + b)

    called = []
    runner = client.beta.messages.tool_runner(
        **ASK, tools=[add], tool_choice={"type": "any", "disable_parallel_tool_use": True}, max_iterations=2
    )
    messages = list(runner)
    assert len(messages) == 2 and called and all(m.stop_reason == "tool_use" for m in messages)


def test_context_management(client):
    turns = [USER]
    for i in range(4):
        turns.append({"role": "assistant", "content": [{"type": "tool_use", "id": f"call_{i}", "name": "add", "input": {"a": i, "b": 1}}]})
        turns.append(
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"call_{i}", "content": f"The sum of {i} and 1 is {i + 1}. " * 3}],
            }
        )
    edit = {"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 3}, "keep": {"type": "tool_uses", "value": 1}}
    answer = client.beta.messages.create(
        **ASK | {"messages": turns},
        tools=TOOLS[1:],
        tool_choice={"type": "none"},
        context_management={"edits": [edit]},
        betas=["context-management-2025-06-27"],
    )
    assert answer.context_management.applied_edits[0].cleared_tool_uses == 3


# Counts, models, searches


def test_count_tokens(client, answer):
    alone = client.messages.count_tokens(model=MODEL, messages=[USER]).input_tokens
    assert alone == answer.usage.input_tokens + answer.usage.cache_read_input_tokens
    assert client.messages.count_tokens(model=MODEL, messages=[USER], tools=TOOLS, system="Be brief.").input_tokens > alone


def test_models(client):
    names = [model.id for model in client.models.list(limit=2)]  # the client asks for page after page
    assert MODEL in names and EMBEDDER not in names and len(set(names)) == len(names)
    card = client.models.retrieve(MODEL)
    assert card.type == "model" and card.max_input_tokens == CONTEXT


def test_search(client):
    assert text(client.messages.create(**ASK | {"model": MODEL + "+bon8", "extra_body": {"temperature": 0.8}}))


# Errors


@pytest.mark.parametrize(
    "field,value",
    [
        ("max_tokens", 0),
        ("messages", []),
        ("mcp_servers", [{"name": "x"}]),
        ("container", "c"),
        ("tool_choice", {"type": "perhaps"}),
        ("temperature", 9),
    ],
)
def test_bad_request(client, field, value):
    with pytest.raises(anthropic.BadRequestError) as err:
        client.messages.create(**ASK | {"extra_body": {field: value}})
    assert err.value.body["type"] == "error" and err.value.body["error"]["type"] == "invalid_request_error"
    assert field in err.value.body["error"]["message"] and err.value.request_id


def test_images_are_refused(client):
    for kind, media in (("image", "image/png"), ("document", "application/pdf")):
        block = {"type": kind, "source": {"type": "base64", "media_type": media, "data": PIXEL}}
        with pytest.raises(anthropic.BadRequestError) as err:
            client.messages.create(**ASK | {"messages": [{"role": "user", "content": [block]}]})
        assert "messages[0]" in err.value.body["error"]["message"]


def test_not_found(client):
    with pytest.raises(anthropic.NotFoundError) as err:
        client.messages.create(**ASK | {"model": "absent"})
    assert err.value.body["error"]["type"] == "not_found_error"
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("absent")


def test_long_context(client):
    with pytest.raises(anthropic.BadRequestError) as err:
        client.messages.create(**ASK | {"messages": [{"role": "user", "content": LONG}]})
    assert "tokens" in err.value.body["error"]["message"]


def test_keys(guarded):
    asked = ASK | {"model": "default"}
    with pytest.raises(anthropic.AuthenticationError) as err:
        anthropic.Anthropic(base_url=guarded.url, api_key="wrong", max_retries=0).messages.create(**asked)
    assert err.value.body["error"]["type"] == "authentication_error"
    assert anthropic.Anthropic(base_url=guarded.url, api_key=guarded.key()).messages.create(**asked).content
    assert anthropic.Anthropic(base_url=guarded.url, auth_token=guarded.key()).messages.create(**asked).content


def test_rate_limit(guarded):
    client = anthropic.Anthropic(base_url=guarded.url, api_key=guarded.key(), max_retries=0)
    with pytest.raises(anthropic.RateLimitError) as err:
        for _ in range(9):
            client.messages.create(**ASK | {"model": "default", "max_tokens": 1})
    assert err.value.body["error"]["type"] == "rate_limit_error" and err.value.response.headers["retry-after"]


def test_body_too_large(guarded):
    client = anthropic.Anthropic(base_url=guarded.url, api_key=guarded.key(), max_retries=0)
    with pytest.raises(anthropic.RequestTooLargeError) as err:
        client.messages.create(**ASK | {"messages": [{"role": "user", "content": "a" * 100_000}]})
    assert err.value.body["error"]["type"] == "request_too_large"


def test_timeout(client):
    with pytest.raises(anthropic.APITimeoutError):
        client.with_options(timeout=0.005).messages.create(**ASK | {"model": SLOW["model"], "extra_body": {}})


def test_cancelled_stream(client, answer):
    with client.messages.stream(**ASK | {"max_tokens": 900, "extra_body": {"temperature": 1}}) as stream:
        next(iter(stream))
    assert text(client.messages.create(**ASK)) == text(answer)


def wait(client, batch):
    for _ in range(600):
        if (batch := client.messages.batches.retrieve(batch.id)).processing_status == "ended":
            return batch
        time.sleep(0.1)
    raise AssertionError(batch)


def params(**more):
    return {"model": MODEL, "max_tokens": 300, "messages": [USER], **GREEDY, **more}


def test_batch(client, answer):
    batch = client.messages.batches.create(requests=[{"custom_id": "good", "params": params()}, {"custom_id": "bad", "params": params(model="nobody")}])
    assert batch.type == "message_batch" and (batch.expires_at - batch.created_at).total_seconds() == 24 * 3600
    batch = wait(client, batch)
    assert batch.request_counts.succeeded == batch.request_counts.errored == 1 and batch.request_counts.processing == 0 and batch.ended_at
    results = {r.custom_id: r.result for r in client.messages.batches.results(batch.id)}
    assert results["good"].type == "succeeded" and text(results["good"].message) == text(answer)
    assert results["bad"].type == "errored" and results["bad"].error.error.type == "not_found_error"
    assert batch.id in [b.id for b in client.messages.batches.list(limit=1)]
    assert client.messages.batches.delete(batch.id).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.retrieve(batch.id)


def test_cancelled_batch(client):
    batch = client.messages.batches.create(requests=[{"custom_id": str(i), "params": params(temperature=1, max_tokens=900)} for i in range(500)])
    with pytest.raises(anthropic.ConflictError):
        client.messages.batches.delete(batch.id)
    assert client.messages.batches.cancel(batch.id).processing_status == "canceling"
    batch = wait(client, batch)
    assert batch.cancel_initiated_at and batch.request_counts.canceled > 0
    assert sum(r.result.type == "canceled" for r in client.messages.batches.results(batch.id)) == batch.request_counts.canceled
