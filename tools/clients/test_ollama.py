# /// script
# dependencies = ["ollama", "pydantic", "pytest", "pytest-asyncio", "pytest-timeout"]
# ///
"""Ollama's client for Python."""

import asyncio
import json
import math

import httpx
import ollama
import pytest

from conftest import CONTEXT, EMBEDDER, LONG, MODEL, PAIR, PIXEL, QUESTION, URL, USER, Estimate

GREEDY = {"temperature": 0, "num_predict": 100}
ASK = {"model": MODEL, "messages": [USER], "options": GREEDY}
WRITE = {"model": MODEL, "prompt": QUESTION, "options": GREEDY}


@pytest.fixture(scope="session")
def client():
    return ollama.Client(host=URL)


@pytest.fixture(scope="session")
def waiting():
    return ollama.AsyncClient(host=URL)


@pytest.fixture(scope="session")
def answer(client):
    return client.chat(**ASK)


def add(a: int, b: int) -> int:
    """The sum of two numbers.

    Args:
        a: the first number
        b: the second number
    """
    return a + b


def test_chat(answer):
    assert answer.message.role == "assistant" and answer.message.content and answer.done and answer.done_reason == "stop"
    assert answer.prompt_eval_count > 0 and answer.eval_count > 0 and answer.total_duration >= answer.eval_duration > 0
    assert answer.created_at and answer.model.startswith(MODEL)


def test_stream(client, answer):
    parts = list(client.chat(**ASK, stream=True))
    assert "".join(p.message.content for p in parts) == answer.message.content and len(parts) > 2
    assert [p.done for p in parts] == [False] * (len(parts) - 1) + [True] and parts[-1].eval_count == answer.eval_count


async def test_async(waiting, answer):
    answers = await asyncio.gather(*(waiting.chat(**ASK) for _ in range(8)))
    assert {a.message.content for a in answers} == {answer.message.content}


async def test_async_stream(waiting, answer):
    parts = [p.message.content async for p in await waiting.chat(**ASK, stream=True)]
    assert "".join(parts) == answer.message.content


def test_several_turns(client, answer):
    turns = [{"role": "system", "content": "Be brief."}, USER, answer.message, {"role": "user", "content": "And 3 more?"}]
    assert client.chat(**ASK | {"messages": turns}).prompt_eval_count > answer.prompt_eval_count


def test_options(client, answer):
    cut = client.chat(**ASK | {"options": GREEDY | {"num_predict": 3, "num_ctx": 512, "num_thread": 1}})
    assert cut.done_reason == "length" and cut.eval_count == 3
    stop = answer.message.content[5:8]
    assert client.chat(**ASK | {"options": GREEDY | {"stop": [stop]}}).message.content == answer.message.content.partition(stop)[0]
    warm = {"temperature": 1, "seed": 3, "top_k": 40, "top_p": 0.9, "min_p": 0.01, "repeat_penalty": 1.1, "repeat_last_n": 32}
    assert (
        client.chat(**ASK | {"options": GREEDY | warm}).message.content == client.chat(**ASK | {"options": GREEDY | warm}).message.content
    )


def test_logprobs(client):
    answer = client.chat(**ASK, logprobs=True, top_logprobs=2)
    assert answer.logprobs and all(len(t.top_logprobs) == 2 and t.logprob <= 0 for t in answer.logprobs)


def test_generate(client):
    answer = client.generate(**WRITE)
    assert answer.response and answer.done_reason == "stop" and answer.context
    assert "".join(p.response for p in client.generate(**WRITE, stream=True)) == answer.response
    more = client.generate(MODEL, "And 3 more?", context=answer.context, options=GREEDY)
    assert more.prompt_eval_count > len(answer.context)


def test_generate_raw(client):
    raw = client.generate(**WRITE | {"options": {"temperature": 0, "num_predict": 5}}, raw=True)
    assert raw.eval_count <= 5 and raw.prompt_eval_count < client.generate(**WRITE).prompt_eval_count


def test_load_and_unload(client):
    assert client.generate(MODEL).done_reason == "load"
    assert client.generate(MODEL, keep_alive=0).done_reason in ("unload", "load")


def test_keep_alive_and_think(client):
    assert client.chat(**ASK, keep_alive="5m", think=False).message.content


def test_schema(client):
    assert Estimate.model_validate_json(client.chat(**ASK, format=Estimate.model_json_schema()).message.content)
    assert set(json.loads(client.generate(**WRITE, format=PAIR).response)) == {"a", "b"}


def test_json(client):
    assert client.chat(**ASK, format="json").message.content.lstrip().startswith("{")


def test_tools(client):
    """Ollama's API cannot demand a call: tools are read, and a call and its result in the history."""
    with_tools = client.chat(**ASK, tools=[add])
    assert with_tools.prompt_eval_count > client.chat(**ASK).prompt_eval_count
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1, "b": 2}}}]}
    turns = [USER, call, {"role": "tool", "tool_name": "add", "content": "3"}]
    assert client.chat(**ASK | {"messages": turns}, tools=[add]).prompt_eval_count > with_tools.prompt_eval_count


def test_embed(client):
    answer = client.embed(EMBEDDER, ["a hen", "an egg"])
    assert len(answer.embeddings) == 2 and answer.prompt_eval_count > 0
    assert all(math.hypot(*v) == pytest.approx(1, abs=1e-4) for v in answer.embeddings)
    assert list(client.embeddings(EMBEDDER, "a hen").embedding) == pytest.approx(list(answer.embeddings[0]), abs=1e-5)


def test_embed_options(client):
    assert len(client.embed(EMBEDDER, "a hen", dimensions=16).embeddings[0]) == 16
    assert client.embed(EMBEDDER, LONG).embeddings
    with pytest.raises(ollama.ResponseError) as err:
        client.embed(EMBEDDER, LONG, truncate=False)
    assert err.value.status_code == 400


def test_models(client):
    models = {m.model: m for m in client.list().models}
    assert {MODEL + ":latest", EMBEDDER + ":latest"} <= set(models) and models[MODEL + ":latest"].details.format == "gguf"
    card = client.show(MODEL)
    assert "completion" in card.capabilities and card.details.family == "llama" and card.modelinfo["llama.context_length"] == CONTEXT
    assert "embedding" in client.show(EMBEDDER).capabilities
    assert {m.model for m in client.ps().models} >= {MODEL + ":latest"}


def test_search(client):
    assert client.chat(**ASK | {"model": MODEL + "+bon8", "options": {"temperature": 0.8}}).message.content


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.pull("absent"),
        lambda c: c.push("absent"),
        lambda c: c.delete("absent"),
        lambda c: c.copy(MODEL, "absent"),
        lambda c: c.create("absent", from_=MODEL),
    ],
)
def test_models_are_not_managed(client, ask):
    with pytest.raises(ollama.ResponseError) as err:
        ask(client)
    assert err.value.status_code == 501 and err.value.error


@pytest.mark.parametrize("stream", [False, True])
def test_not_found(client, stream):
    with pytest.raises(ollama.ResponseError) as err:
        list(client.chat(**ASK | {"model": "absent"}, stream=stream))
    assert err.value.status_code == 404 and "absent" in err.value.error


@pytest.mark.parametrize("options", [{"temperature": -1}, {"num_predict": -9}, {"top_p": 2}, {"seed": "x"}])
def test_bad_request(client, options):
    with pytest.raises(ollama.ResponseError) as err:
        client.chat(**ASK | {"options": options})
    assert err.value.status_code == 400 and next(iter(options)) in err.value.error


def test_images_are_refused(client):
    with pytest.raises(ollama.ResponseError) as err:
        client.chat(**ASK | {"messages": [USER | {"images": [PIXEL]}]})
    assert err.value.status_code == 400 and "image" in err.value.error


def test_long_context(client):
    with pytest.raises(ollama.ResponseError) as err:
        client.chat(**ASK | {"messages": [{"role": "user", "content": LONG}]})
    assert err.value.status_code == 400


def test_keys(guarded):
    with pytest.raises(ollama.ResponseError) as err:
        ollama.Client(host=guarded.url).chat(**ASK | {"model": "lutra-tiny-s"})
    assert err.value.status_code == 401
    keyed = ollama.Client(host=guarded.url, headers={"Authorization": "Bearer " + guarded.key()})
    assert keyed.chat(**ASK | {"model": "lutra-tiny-s"}).done


def test_rate_limit(guarded):
    keyed = ollama.Client(host=guarded.url, headers={"Authorization": "Bearer " + guarded.key()})
    with pytest.raises(ollama.ResponseError) as err:
        for _ in range(9):
            keyed.chat("lutra-tiny-s", [USER], options={"num_predict": 1})
    assert err.value.status_code == 429


def test_body_too_large(guarded):
    keyed = ollama.Client(host=guarded.url, headers={"Authorization": "Bearer " + guarded.key()})
    with pytest.raises(ollama.ResponseError) as err:
        keyed.chat("lutra-tiny-s", [{"role": "user", "content": "a" * 100_000}])
    assert err.value.status_code == 413


def test_timeout():
    with pytest.raises(httpx.TimeoutException):
        ollama.Client(host=URL, timeout=0.005).chat(**ASK | {"options": {"num_predict": 900}}, format={"type": "string", "minLength": 2000})


def test_cancelled_stream(client, answer):
    parts = client.chat(**ASK | {"options": {"temperature": 1, "num_predict": 900}}, stream=True)
    next(parts)
    parts.close()
    assert client.chat(**ASK).message.content == answer.message.content
