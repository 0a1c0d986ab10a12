# /// script
# dependencies = ["openai", "pytest", "pytest-asyncio", "pytest-timeout"]
# ///
"""OpenAI's client for Python: chats, their formats and tools, and how they end."""

import asyncio
import json
import threading
import time

import openai
import pytest

from conftest import EMBEDDER, MODEL, NAMES, PAIR, QUESTION, SLOW, URL, USER, Estimate

CHAT = {"model": MODEL, "messages": [USER], "max_tokens": 300, "temperature": 0}
TOOLS = [{"type": "function", "function": {"name": name, "description": name + " two numbers", "parameters": PAIR}} for name in NAMES]


@pytest.fixture(scope="session")
def client():
    return openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="session")
def waiting():
    return openai.AsyncOpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="session")
def answer(client):
    """The greedy answer, which other ways to ask must give too."""
    return client.chat.completions.create(**CHAT)


# Chats


def test_chat(answer):
    assert answer.object == "chat.completion" and answer.model == MODEL and answer.system_fingerprint
    (choice,) = answer.choices
    assert choice.message.role == "assistant" and choice.message.content and choice.finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_chat_in_parts(client, answer):
    parts = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
    assert client.chat.completions.create(**CHAT | {"messages": parts}).choices[0].message == answer.choices[0].message


def test_stream(client, answer):
    chunks = list(client.chat.completions.create(**CHAT, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == answer.choices[0].message.content
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == answer.usage.completion_tokens
    assert all(c.usage is None for c in chunks[:-1])


def test_stream_helper(client, answer):
    with client.chat.completions.stream(**CHAT) as stream:
        kinds = [event.type for event in stream]
    assert kinds[-1] == "content.done" and "content.delta" in kinds
    assert stream.get_final_completion().choices[0].message.content == answer.choices[0].message.content


async def test_async(waiting, answer):
    answers = await asyncio.gather(*(waiting.chat.completions.create(**CHAT) for _ in range(8)))
    assert {a.choices[0].message.content for a in answers} == {answer.choices[0].message.content}


async def test_async_stream(waiting, answer):
    pieces = [c.choices[0].delta.content or "" async for c in await waiting.chat.completions.create(**CHAT, stream=True)]
    assert "".join(pieces) == answer.choices[0].message.content


def test_raw_response(client):
    raw = client.chat.completions.with_raw_response.create(**CHAT)
    assert raw.headers["x-request-id"] and raw.parse()._request_id == raw.headers["x-request-id"]


def test_streaming_response(client, answer):
    with client.chat.completions.with_streaming_response.create(**CHAT) as raw:
        assert raw.parse().choices[0].message.content == answer.choices[0].message.content


def test_many_choices(client):
    answer = client.chat.completions.create(**CHAT | {"temperature": 1, "seed": 5}, n=4)
    assert [c.index for c in answer.choices] == [0, 1, 2, 3]
    streamed = ["", "", "", ""]
    for chunk in client.chat.completions.create(**CHAT | {"temperature": 1, "seed": 5}, n=4, stream=True):
        for choice in chunk.choices:
            streamed[choice.index] += choice.delta.content or ""
    assert streamed == [c.message.content for c in answer.choices]


def test_length(client):
    answer = client.chat.completions.create(**CHAT | {"max_tokens": 3})
    assert answer.choices[0].finish_reason == "length" and answer.usage.completion_tokens == 3
    assert client.chat.completions.create(model=MODEL, messages=[USER], max_completion_tokens=2).usage.completion_tokens == 2


def test_stop(client, answer):
    text = answer.choices[0].message.content
    cut = client.chat.completions.create(**CHAT, stop=[text[5:8]]).choices[0]
    assert cut.finish_reason == "stop" and cut.message.content == text[: text.index(text[5:8])]


def test_seed(client):
    asked = CHAT | {"temperature": 2, "top_p": 0.99, "presence_penalty": 0.5, "frequency_penalty": -0.5}
    first, second, *others = (client.chat.completions.create(**asked, seed=s).choices[0].message.content for s in (1, 1, 2, 3, 4))
    assert first == second and len({first, *others}) > 1


def test_logit_bias(client):
    digits = {str(ord(d)): -100 for d in "0123456789"}  # of the models' tokenizer, whose tokens 0 to 255 are bytes
    assert not any(d in client.chat.completions.create(**CHAT, logit_bias=digits).choices[0].message.content for d in "0123456789")


def test_logprobs(client):
    choice = client.chat.completions.create(**CHAT, logprobs=True, top_logprobs=3).choices[0]
    tokens = choice.logprobs.content
    assert bytes(b for t in tokens for b in t.bytes).decode().startswith(choice.message.content)
    for token in tokens:
        assert len(token.top_logprobs) == 3 and token.logprob <= 0
        assert token.logprob == pytest.approx(max(t.logprob for t in token.top_logprobs))  # temperature 0


def test_logprobs_streamed(client):
    whole = client.chat.completions.create(**CHAT, logprobs=True).choices[0].logprobs.content
    pieces = []
    for chunk in client.chat.completions.create(**CHAT, logprobs=True, stream=True):
        if chunk.choices and chunk.choices[0].logprobs:
            pieces += chunk.choices[0].logprobs.content
    assert [t.token for t in pieces] == [t.token for t in whole]


def test_several_turns(client, answer):
    turns = [{"role": "developer", "content": "Be brief."}, USER, answer.choices[0].message, {"role": "user", "content": "And 3 more?"}]
    longer = client.chat.completions.create(**CHAT | {"messages": turns})
    assert longer.choices[0].message.content and longer.usage.prompt_tokens > answer.usage.prompt_tokens


def test_cached_tokens(client):
    asked = CHAT | {"messages": [{"role": "user", "content": "Tom has 7 hens. " * 20 + QUESTION}]}
    client.chat.completions.create(**asked)
    assert client.chat.completions.create(**asked).usage.prompt_tokens_details.cached_tokens > 0


# Structured answers


def test_parse(client):
    message = client.chat.completions.parse(**CHAT, response_format=Estimate).choices[0].message
    assert isinstance(message.parsed, Estimate) and json.loads(message.content) == message.parsed.model_dump()


def test_parse_streamed(client):
    with client.chat.completions.stream(**CHAT, response_format=Estimate) as stream:
        parsed = [event.parsed for event in stream if event.type == "content.done"]
    assert isinstance(parsed[0], Estimate)


def test_strict_schema(client):
    schema = {
        "type": "object",
        "properties": {"unit": {"enum": ["eggs", "boxes"]}, "counts": {"type": "array", "items": PAIR, "minItems": 2, "maxItems": 2}},
        "required": ["unit", "counts"],
        "additionalProperties": False,
    }
    formats = {"type": "json_schema", "json_schema": {"name": "order", "strict": True, "schema": schema}}
    for choice in client.chat.completions.create(**CHAT | {"temperature": 1, "max_tokens": 400}, n=8, response_format=formats).choices:
        value = json.loads(choice.message.content)
        assert list(value) == ["unit", "counts"] and value["unit"] in ("eggs", "boxes") and len(value["counts"]) == 2
        assert all(0 <= pair[name] <= 999 for pair in value["counts"] for name in "ab")


def test_json_object(client):
    choice = client.chat.completions.create(**CHAT, response_format={"type": "json_object"}).choices[0]
    assert choice.message.content.startswith("{") and choice.finish_reason in ("stop", "length")


def test_parse_cut_off(client):
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(**CHAT | {"max_tokens": 2}, response_format=Estimate)


def test_bad_schema(client):
    with pytest.raises(openai.BadRequestError) as err:
        client.chat.completions.create(
            **CHAT, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nothing"}}}
        )
    assert err.value.param.startswith("response_format")


# Tools


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "function": {"name": "add"}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "add"}}]}},
    ],
)
def test_a_call_is_made(client, choice):
    (answer,) = client.chat.completions.create(**CHAT, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False).choices
    (call,) = answer.message.tool_calls
    assert answer.finish_reason == "tool_calls" and answer.message.content is None
    assert call.id and call.type == "function" and call.function.name in (NAMES if choice == "required" else ["add"])
    assert set(json.loads(call.function.arguments)) == {"a", "b"}


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_no_call_is_made(client, choice):
    message = client.chat.completions.create(**CHAT, tools=TOOLS, tool_choice=choice).choices[0].message
    assert message.content and (choice == "auto" or not message.tool_calls)


def test_calls_streamed(client):
    with client.chat.completions.stream(**CHAT, tools=TOOLS, tool_choice="required", parallel_tool_calls=False) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
    (call,) = stream.get_final_completion().choices[0].message.tool_calls
    assert [(d.name, d.arguments) for d in done] == [(call.function.name, call.function.arguments)]


def test_tools_as_models(client):
    tools = [openai.pydantic_function_tool(Estimate)]
    message = client.chat.completions.parse(**CHAT, tools=tools, tool_choice="required", parallel_tool_calls=False).choices[0].message
    assert isinstance(message.tool_calls[0].function.parsed_arguments, Estimate)


def test_results_of_tools(client):
    first = client.chat.completions.create(**CHAT, tools=TOOLS, tool_choice="required").choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": "84"} for call in first.tool_calls]
    last = client.chat.completions.create(**CHAT | {"messages": [USER, first, *results]}, tools=TOOLS, tool_choice="none")
    assert last.choices[0].message.content and last.choices[0].finish_reason == "stop"


def test_parallel_calls_in_history(client):
    calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": "add", "arguments": json.dumps({"a": i, "b": 1})}} for i in range(3)
    ]
    results = [{"role": "tool", "tool_call_id": f"call_{i}", "content": str(i + 1)} for i in reversed(range(3))]
    history = [USER, {"role": "assistant", "tool_calls": calls}, *results]
    assert client.chat.completions.create(**CHAT | {"messages": history}, tools=TOOLS).choices[0].message


def test_a_call_that_was_cut_off_can_be_sent_back(client):
    first = client.chat.completions.create(
        **CHAT | {"max_tokens": 40}, tools=TOOLS[:1], tool_choice="required", logit_bias={str(ord("}")): -100}
    ).choices[0]
    assert first.finish_reason == "length"
    call = {"id": "call_1", "type": "function", "function": {"name": "multiply", "arguments": '{"a": 1'}}
    history = [USER, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "call_1", "content": "cut off"}]
    assert client.chat.completions.create(**CHAT | {"messages": history}, tools=TOOLS).choices[0].message


def test_agents_loop(client):
    """An agent's loop as the documentation writes it: calls until there is an answer."""
    history, rounds = [USER], 0
    while rounds < 3:
        message = (
            client.chat.completions.create(
                **CHAT | {"messages": history}, tools=TOOLS, parallel_tool_calls=False, tool_choice="none" if rounds == 2 else "required"
            )
            .choices[0]
            .message
        )
        history.append(message)
        for call in message.tool_calls or []:
            pair = json.loads(call.function.arguments)
            history.append({"role": "tool", "tool_call_id": call.id, "content": str(pair["a"] + pair["b"])})
        rounds += 1
    assert history[-1].content


# How answers end early


def test_timeout(client):
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.005).chat.completions.create(**CHAT | SLOW)


def test_cancelled_stream(client, answer):
    for _ in range(4):
        with client.chat.completions.create(**CHAT | {"max_tokens": 900, "temperature": 2}, stream=True) as stream:
            next(iter(stream))
    assert client.chat.completions.create(**CHAT).choices[0].message == answer.choices[0].message


async def test_cancelled_task(waiting):
    task = asyncio.create_task(waiting.chat.completions.create(**CHAT | {"max_tokens": 900, "temperature": 2, "n": 8}))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await waiting.chat.completions.create(**CHAT)).choices


def test_threads(client, answer):
    got = []
    threads = [
        threading.Thread(target=lambda: got.append(client.chat.completions.create(**CHAT).choices[0].message.content)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [answer.choices[0].message.content] * 8


# Files and batches


def lines(*bodies, url="/v1/chat/completions"):
    return "".join(json.dumps({"custom_id": f"line-{i}", "method": "POST", "url": url, "body": body}) + "\n" for i, body in enumerate(bodies)).encode()


def wait(client, batch):
    for _ in range(600):
        if (batch := client.batches.retrieve(batch.id)).status not in ("validating", "in_progress", "finalizing", "cancelling"):
            return batch
        time.sleep(0.1)
    raise AssertionError(batch)


def test_files(client):
    sent = [client.files.create(file=("in.jsonl", lines(CHAT)), purpose="batch") for _ in range(3)]
    assert sent[0].object == "file" and sent[0].filename == "in.jsonl" and sent[0].bytes == len(lines(CHAT)) and sent[0].status == "processed"
    ids = [f.id for f in client.files.list(limit=2, purpose="batch")]  # the client asks for further pages
    assert len(set(ids)) == len(ids) and {f.id for f in sent} <= set(ids)
    assert client.files.retrieve(sent[1].id) == sent[1]
    assert client.files.content(sent[1].id).read() == lines(CHAT)
    kept = client.files.create(file=("in.jsonl", b"x"), purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600})
    assert kept.expires_at - kept.created_at == 3600
    for f in [*sent, kept]:
        assert client.files.delete(f.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(sent[0].id)
    with pytest.raises(openai.BadRequestError):
        client.files.create(file=("in.jsonl", b"x"), purpose="assistants")


def test_batch(client, answer):
    file = client.files.create(file=("in.jsonl", lines(CHAT | {"receipt": True}, CHAT | {"model": "nobody"})), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"night": "1"})
    assert batch.object == "batch" and batch.expires_at == batch.created_at + 24 * 3600
    batch = wait(client, batch)
    assert batch.status == "completed" and batch.metadata == {"night": "1"} and batch.completed_at
    assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (2, 1, 1)
    (line,) = client.files.content(batch.output_file_id).text.splitlines()
    line = json.loads(line)
    assert line["custom_id"] == "line-0" and line["error"] is None and line["response"]["body"]["receipt"]
    assert line["response"]["body"]["choices"][0]["message"]["content"] == answer.choices[0].message.content
    (line,) = client.files.content(batch.error_file_id).text.splitlines()
    assert json.loads(line)["response"]["status_code"] == 404
    assert batch.id in [b.id for b in client.batches.list(limit=1)]


def test_batch_endpoints(client):
    for url, body in {
        "/v1/completions": {"model": MODEL, "prompt": "1 + 1", "max_tokens": 4},
        "/v1/embeddings": {"model": EMBEDDER, "input": "eggs"},
        "/v1/responses": {"model": MODEL, "input": QUESTION},
    }.items():
        file = client.files.create(file=lines(body, url=url), purpose="batch")
        batch = wait(client, client.batches.create(input_file_id=file.id, endpoint=url, completion_window="24h"))
        assert batch.request_counts.completed == 1, batch


def test_batch_that_is_wrong(client):
    file = client.files.create(file=("in.jsonl", b"{\n" + lines(CHAT, CHAT)), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    assert batch.status == "failed" and [(e.code, e.line) for e in batch.errors.data] == [("invalid_json_line", 1)]


def test_cancelled_batch(client):
    slow = [CHAT | {"max_tokens": 900, "temperature": 2, "n": 8, "seed": i} for i in range(500)]
    file = client.files.create(file=("in.jsonl", lines(*slow)), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    assert client.batches.cancel(batch.id).status == "cancelling"
    batch = wait(client, batch)
    assert batch.status == "cancelled" and batch.cancelling_at and batch.cancelled_at
    with pytest.raises(openai.ConflictError):
        client.batches.cancel(batch.id)
