"""OpenAI's client for Python: completions, searches, vectors, models, errors."""

import asyncio
import math

import openai
import pytest

from conftest import EMBEDDER, LONG, MODEL, PIXEL, URL, USER

CHAT = {"model": MODEL, "messages": [USER], "max_tokens": 300, "temperature": 0}


@pytest.fixture(scope="session")
def client():
    return openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="session")
def waiting():
    return openai.AsyncOpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)


# Completions


def test_completion(client):
    answer = client.completions.create(model=MODEL, prompt=["What is 9 * 8?", "What is 3 + 4?"], max_tokens=8, n=2, temperature=1)
    assert [c.index for c in answer.choices] == [0, 1, 2, 3] and answer.object == "text_completion"


def test_completion_echo_and_logprobs(client):
    choice = client.completions.create(model=MODEL, prompt="What is 9 * 8?", max_tokens=0, echo=True, logprobs=1).choices[0]
    assert choice.text == "What is 9 * 8?" == "".join(choice.logprobs.tokens)
    assert choice.logprobs.token_logprobs[0] is None and all(math.isfinite(p) for p in choice.logprobs.token_logprobs[1:])


def test_completion_streamed(client):
    asked = {"model": MODEL, "prompt": "What is 9 * 8?", "max_tokens": 20, "temperature": 0}
    whole = client.completions.create(**asked).choices[0].text
    assert "".join(c.choices[0].text for c in client.completions.create(**asked, stream=True)) == whole


# Searches


@pytest.mark.parametrize(
    "plan",
    [
        {"method": "best_of_n", "n": 4},
        {"method": "beam_search", "n": 4, "width": 2},
        {"method": "self_consistency", "n": 4},
        {"method": "dvts", "n": 4, "width": 2},
    ],
)
def test_search(client, plan):
    answer = client.chat.completions.create(**CHAT | {"temperature": 0.8}, seed=7, extra_body={"test_time_scaling": plan})
    assert answer.test_time_scaling["method"] == plan["method"] and answer.choices[0].test_time_scaling["tokens"] > 0
    assert answer.usage.completion_tokens > answer.choices[0].test_time_scaling["tokens"]


def test_search_by_name_and_header(client):
    by_name = client.chat.completions.create(**CHAT | {"model": MODEL + "+bon8", "temperature": 0.8}, seed=7)
    by_header = client.chat.completions.create(**CHAT | {"temperature": 0.8}, seed=7, extra_headers={"X-Lutra-Scaling": "bon8"})
    assert by_name.choices[0].message.content == by_header.choices[0].message.content
    assert by_name.test_time_scaling["n"] == by_header.test_time_scaling["n"] == 8


def test_search_streamed(client):
    chunks = list(
        client.chat.completions.create(**CHAT | {"temperature": 0.8}, seed=7, stream=True, extra_body={"test_time_scaling": "beam16x4"})
    )
    last = next(c for c in reversed(chunks) if c.choices)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) and last.test_time_scaling["stop_reason"]


def test_search_refused(client):
    with pytest.raises(openai.BadRequestError) as err:
        client.chat.completions.create(**CHAT, extra_body={"test_time_scaling": {"method": "beam_search", "n": 5, "width": 2}})
    assert err.value.code in ("n_not_divisible", "temperature_zero")


# Vectors and models


def test_embeddings(client):
    # The client asks for base64 and decodes it; with float it takes what it gets.
    packed = client.embeddings.create(model=EMBEDDER, input=["a hen", "an egg"])
    plain = client.embeddings.create(model=EMBEDDER, input=["a hen", "an egg"], encoding_format="float")
    assert [d.index for d in packed.data] == [0, 1] and packed.usage.prompt_tokens == plain.usage.prompt_tokens > 0
    for a, b in zip(packed.data, plain.data, strict=True):
        assert a.embedding == pytest.approx(b.embedding, abs=1e-6) and math.hypot(*a.embedding) == pytest.approx(1, abs=1e-4)


def test_embeddings_shortened(client):
    assert len(client.embeddings.create(model=EMBEDDER, input="a hen", dimensions=16).data[0].embedding) == 16


def test_embeddings_of_nothing(client):
    with pytest.raises(openai.BadRequestError) as err:
        client.embeddings.create(model=EMBEDDER, input="")
    assert err.value.param == "input"


async def test_embeddings_async(waiting):
    answers = await asyncio.gather(*(waiting.embeddings.create(model=EMBEDDER, input="a hen") for _ in range(4)))
    assert all(a.data[0].embedding == answers[0].data[0].embedding for a in answers)


def test_models(client):
    cards = {card.id: card for card in client.models.list()}
    assert MODEL in cards and EMBEDDER in cards
    card = client.models.retrieve(MODEL)
    assert card.object == "model" and card.max_model_len > 0


# Errors


@pytest.mark.parametrize(
    "field,value",
    [
        ("temperature", 9),
        ("n", 0),
        ("top_logprobs", 99),
        ("max_tokens", -1),
        ("messages", []),
        ("tool_choice", "perhaps"),
        ("stop", [1]),
        ("response_format", {"type": "poem"}),
        ("web_search_options", {}),
        ("modalities", ["audio"]),
    ],
)
def test_bad_request(client, field, value):
    with pytest.raises(openai.BadRequestError) as err:
        client.chat.completions.create(**CHAT | {field: value})
    assert err.value.param.split(".")[0] == field and err.value.code and err.value.request_id


@pytest.mark.parametrize("stream", [False, True])
def test_not_found(client, stream):
    with pytest.raises(openai.NotFoundError) as err:
        client.chat.completions.create(**CHAT | {"model": "absent"}, stream=stream)
    assert err.value.code == "model_not_found"


def test_long_context(client):
    with pytest.raises(openai.BadRequestError) as err:
        client.chat.completions.create(**CHAT | {"messages": [{"role": "user", "content": LONG}]})
    assert err.value.code == "context_length_exceeded"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}},
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
        {"type": "file", "file": {"file_id": "f"}},
    ],
)
def test_media_are_refused(client, part):
    with pytest.raises(openai.BadRequestError) as err:
        client.chat.completions.create(
            **CHAT | {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, part]}]}
        )
    assert part["type"] in err.value.message or err.value.param.startswith("messages[0]")


def test_keys(guarded):
    asked = CHAT | {"model": "default"}
    with pytest.raises(openai.AuthenticationError) as err:
        openai.OpenAI(base_url=guarded.url + "/v1", api_key="wrong", max_retries=0).chat.completions.create(**asked)
    assert err.value.code == "invalid_api_key"
    assert openai.OpenAI(base_url=guarded.url + "/v1", api_key=guarded.key()).chat.completions.create(**asked).choices


def test_rate_limit(guarded):
    client = openai.OpenAI(base_url=guarded.url + "/v1", api_key=guarded.key(), max_retries=0)
    with pytest.raises(openai.RateLimitError) as err:
        for _ in range(9):
            client.chat.completions.create(**CHAT | {"model": "default", "max_tokens": 1})
    assert err.value.code == "rate_limit_exceeded" and int(err.value.response.headers["retry-after"]) > 0


def test_body_too_large(guarded):
    client = openai.OpenAI(base_url=guarded.url + "/v1", api_key=guarded.key(), max_retries=0)
    with pytest.raises(openai.APIStatusError) as err:
        client.chat.completions.create(**CHAT | {"messages": [{"role": "user", "content": "a" * 100_000}]})
    assert err.value.status_code == 413 and err.value.code == "request_too_large"
