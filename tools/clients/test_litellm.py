# /// script
# dependencies = ["litellm", "mcp", "pytest", "pytest-asyncio", "pytest-timeout"]
# ///
"""LiteLLM: one function for the three APIs that the server speaks, and what else it has for one of them."""

import asyncio
import json
import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # prices are not fetched at every start
import litellm
import pytest

from conftest import EMBEDDER, LONG, MODEL, NAMES, PAIR, PIXEL, QUESTION, SLOW, URL, USER, Estimate

litellm.suppress_debug_info = True
OPENAI = {"model": "openai/" + MODEL, "api_base": URL + "/v1", "api_key": "none"}
APIS = [
    OPENAI,
    {"model": "anthropic/" + MODEL, "api_base": URL, "api_key": "none"},
    {"model": "ollama_chat/" + MODEL, "api_base": URL, "api_key": "none"},
]
CHAT = {"messages": [USER], "temperature": 0, "max_tokens": 300, "num_retries": 0}
TOOLS = [{"type": "function", "function": {"name": name, "description": name + " two numbers", "parameters": PAIR}} for name in NAMES]
every_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api["model"].partition("/")[0])
demanding = pytest.mark.parametrize("api", APIS[:2], ids=["openai", "anthropic"])  # Ollama's API cannot demand a call


@every_api
def test_chat(api):
    answer = litellm.completion(**CHAT, **api)
    assert answer.choices[0].message.content and answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_the_apis_agree():
    assert len({litellm.completion(**CHAT, **api).choices[0].message.content for api in APIS}) == 1


@every_api
def test_stream(api):
    chunks = list(litellm.completion(**CHAT, **api, stream=True, stream_options={"include_usage": True}))
    whole = litellm.stream_chunk_builder(chunks)
    assert whole.choices[0].message.content == litellm.completion(**CHAT, **api).choices[0].message.content
    assert whole.usage.completion_tokens > 0


@every_api
async def test_async(api):
    answers = await asyncio.gather(*(litellm.acompletion(**CHAT, **api) for _ in range(4)))
    assert len({a.choices[0].message.content for a in answers}) == 1


@every_api
async def test_async_stream(api):
    pieces = [c.choices[0].delta.content or "" async for c in await litellm.acompletion(**CHAT, **api, stream=True)]
    assert "".join(pieces)


@every_api
def test_system_and_several_turns(api):
    turns = [
        {"role": "system", "content": "Be brief."},
        USER,
        {"role": "assistant", "content": "84"},
        {"role": "user", "content": "And 3 more?"},
    ]
    assert litellm.completion(**CHAT | {"messages": turns}, **api).choices[0].message.content


@every_api
def test_length_and_stop(api):
    assert litellm.completion(**CHAT | {"max_tokens": 3}, **api).choices[0].finish_reason == "length"
    text = litellm.completion(**CHAT, **api).choices[0].message.content
    assert litellm.completion(**CHAT, **api, stop=[text[5:8]]).choices[0].message.content == text.partition(text[5:8])[0]


def test_choices_and_logprobs():
    answer = litellm.completion(**CHAT | {"temperature": 1}, **OPENAI, n=3, logprobs=True, top_logprobs=2, seed=1)
    assert len(answer.choices) == 3 and all(len(t.top_logprobs) == 2 for t in answer.choices[0].logprobs.content)


@every_api
def test_schema(api):
    text = litellm.completion(**CHAT | {"max_tokens": 300}, **api, response_format=Estimate).choices[0].message.content
    assert set(json.loads(text)) == {"eggs", "sure"}


@demanding
def test_tools(api):
    first = litellm.completion(**CHAT, **api, tools=TOOLS, tool_choice="required", parallel_tool_calls=False).choices[0]
    assert first.finish_reason == "tool_calls" and all(c.function.name in NAMES for c in first.message.tool_calls)
    results = [{"role": "tool", "tool_call_id": c.id, "content": "84"} for c in first.message.tool_calls]
    last = litellm.completion(**CHAT | {"messages": [USER, first.message.model_dump(), *results]}, **api, tools=TOOLS, tool_choice="none")
    assert last.choices[0].message.content


@demanding
def test_named_tool_streamed(api):
    named = {"type": "function", "function": {"name": "add"}}
    chunks = list(litellm.completion(**CHAT, **api, tools=TOOLS, tool_choice=named, parallel_tool_calls=False, stream=True))
    (call,) = litellm.stream_chunk_builder(chunks).choices[0].message.tool_calls
    assert call.function.name == "add" and set(json.loads(call.function.arguments)) == {"a", "b"}


def test_search():
    answer = litellm.completion(**CHAT | {"temperature": 0.8}, **OPENAI, extra_body={"test_time_scaling": {"method": "best_of_n", "n": 4}})
    assert answer.choices[0].message.content and answer.usage.completion_tokens > 0


def test_text_completion():
    answer = litellm.text_completion(
        model="text-completion-openai/" + MODEL, api_base=URL + "/v1", api_key="none", prompt="12 * 7 =", max_tokens=10
    )
    assert answer.choices[0].text


@pytest.mark.parametrize(
    "api",
    [{"model": "openai/" + EMBEDDER, "api_base": URL + "/v1", "api_key": "none"}, {"model": "ollama/" + EMBEDDER, "api_base": URL}],
    ids=["openai", "ollama"],
)
def test_embedding(api):
    assert len(litellm.embedding(input=["a hen", "an egg"], **api).data) == 2


def test_rerank():
    answer = litellm.rerank(
        model="jina_ai/" + EMBEDDER,
        api_base=URL + "/v1/rerank",
        api_key="none",
        query="eggs",
        documents=["a hen", "a stone", "an egg"],
        top_n=2,
    )
    assert len(answer.results) == 2 and answer.results[0]["relevance_score"] >= answer.results[1]["relevance_score"]


def test_responses():
    answer = litellm.responses(input=QUESTION, temperature=0, **OPENAI)
    assert answer.status == "completed" and answer.output
    events = list(litellm.responses(input=QUESTION, temperature=0, stream=True, **OPENAI))
    assert events[-1].type == "response.completed"


async def test_messages():
    """Anthropic's API asked through LiteLLM's."""
    answer = await litellm.anthropic.messages.acreate(messages=[USER], max_tokens=50, **APIS[1])
    assert answer["type"] == "message" and answer["content"]


def test_router():
    router = litellm.Router(model_list=[{"model_name": "sums", "litellm_params": OPENAI}], num_retries=0)
    assert router.completion(model="sums", messages=[USER], max_tokens=20).choices


@every_api
def test_bad_request(api):
    with pytest.raises(litellm.BadRequestError, match="temperature"):
        litellm.completion(**CHAT | {"temperature": -1}, **api)


@every_api
def test_not_found(api):
    with pytest.raises((litellm.NotFoundError, litellm.APIConnectionError), match="absent"):
        litellm.completion(**CHAT, **api | {"model": api["model"].partition("/")[0] + "/absent"})


def test_long_context():
    with pytest.raises(litellm.ContextWindowExceededError):
        litellm.completion(**CHAT | {"messages": [{"role": "user", "content": LONG}]}, **OPENAI)


def test_images_are_refused():
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}}
    with pytest.raises(litellm.BadRequestError, match="image"):
        litellm.completion(**CHAT | {"messages": [{"role": "user", "content": [part]}]}, **OPENAI)


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_keys_and_rates(guarded, name):
    api = {"model": name + "/lutra-tiny-s", "api_base": guarded.url + ("/v1" if name == "openai" else "")}
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(**CHAT, **api, api_key="wrong")
    key = guarded.key()
    with pytest.raises(litellm.RateLimitError):
        for _ in range(9):
            litellm.completion(**CHAT | {"max_tokens": 1}, **api, api_key=key)


def test_timeout():
    with pytest.raises(litellm.Timeout):
        litellm.completion(**CHAT | {"temperature": 0.8}, **OPENAI | {"model": "openai/" + SLOW["model"]}, timeout=0.005)
