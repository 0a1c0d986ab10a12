# /// script
# dependencies = ["pydantic-ai-slim[openai,anthropic]", "pytest", "pytest-asyncio", "pytest-timeout"]
# ///
"""Pydantic AI over chats, responses and Anthropic's API."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent, BinaryContent, ModelHTTPError, ModelRetry, NativeOutput, ToolOutput, UsageLimits
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from conftest import LONG, MODEL, PIXEL, QUESTION, URL

Number = Annotated[int, Field(ge=0, le=999)]
LED = {"temperature": 0, "max_tokens": 300, "parallel_tool_calls": False}


class Order(BaseModel):
    """What answers are held to."""

    unit: Literal["eggs", "boxes"]
    sure: bool


def make(kind, name=MODEL):
    if kind == "anthropic":
        return AnthropicModel(name, provider=AnthropicProvider(base_url=URL, api_key="none"), profile={"supports_json_schema_output": True})
    return (OpenAIChatModel if kind == "chat" else OpenAIResponsesModel)(
        name, provider=OpenAIProvider(base_url=URL + "/v1", api_key="none")
    )


@pytest.fixture(scope="session", params=["chat", "responses", "anthropic"])
def kind(request):
    return request.param


@pytest.fixture
def agent(kind):
    return Agent(make(kind), instructions="Be brief.", model_settings=LED)


async def test_run(agent):
    result = await agent.run(QUESTION)
    assert result.output and result.usage.input_tokens > 0 and result.usage.output_tokens > 0


async def test_stream(agent):
    async with agent.run_stream(QUESTION) as run:
        pieces = [piece async for piece in run.stream_text(delta=True, debounce_by=None)]
    assert "".join(pieces) == (await agent.run(QUESTION)).output


async def test_events(agent):
    kinds = set()
    async with agent.run_stream_events(QUESTION) as events:
        async for event in events:
            kinds.add(event.event_kind)
    assert {"part_start", "final_result", "agent_run_result"} <= kinds


async def test_history(agent):
    first = await agent.run(QUESTION)
    second = await agent.run("And 3 more?", message_history=first.all_messages())
    assert second.output and len(second.all_messages()) == 4 and second.usage.input_tokens > first.usage.input_tokens


@pytest.mark.parametrize("mode", [ToolOutput, NativeOutput], ids=["tool", "native"])
async def test_output(kind, mode):
    result = await Agent(make(kind), output_type=mode(Order), model_settings=LED).run(QUESTION)
    assert isinstance(result.output, Order)


async def test_output_streamed(kind):
    async with Agent(make(kind), output_type=ToolOutput(Order), model_settings=LED).run_stream(QUESTION) as run:
        assert isinstance(await run.get_output(), Order)


async def test_one_of_several_outputs(kind):
    class Refusal(BaseModel):
        why: Literal["no eggs", "no boxes"]

    result = await Agent(make(kind), output_type=[Order, Refusal], model_settings=LED).run(QUESTION)
    assert isinstance(result.output, Order | Refusal)


async def test_tool(kind):
    """The tool's result is the answer: with an output_type, each turn is a call of a tool or of the output's."""
    called = []

    def multiply(a: Number, b: Number) -> Order:
        """The product of two numbers."""
        called.append(a * b)
        return Order(unit="eggs", sure=True)

    result = await Agent(make(kind), output_type=multiply, model_settings=LED).run(QUESTION)
    assert called and isinstance(result.output, Order)


async def test_tool_that_asks_again(kind):
    tries = []

    def multiply(a: Number, b: Number) -> str:
        """The product of two numbers."""
        tries.append(a)
        if len(tries) == 1:
            raise ModelRetry("Once more.")
        return str(a * b)

    result = await Agent(make(kind), output_type=multiply, retries=2, model_settings=LED).run(QUESTION)
    assert len(tries) == 2 and result.output.isdigit()


async def test_tools_are_shown(kind):
    agent = Agent(make(kind), model_settings=LED)

    @agent.tool_plain
    def add(a: Number, b: Number) -> str:
        """The sum of two numbers."""
        return str(a + b)

    plain = await Agent(make(kind), model_settings=LED).run(QUESTION)
    shown = await agent.run(QUESTION)
    assert shown.usage.input_tokens + shown.usage.cache_read_tokens > plain.usage.input_tokens + plain.usage.cache_read_tokens


async def test_usage_limit(agent):
    with pytest.raises(UsageLimitExceeded):
        await agent.run(QUESTION, usage_limits=UsageLimits(output_tokens_limit=2))


def test_run_sync(kind):
    assert Agent(make(kind), model_settings=LED).run_sync(QUESTION).output


async def test_search(kind):
    assert (await Agent(make(kind, MODEL + "+bon8"), model_settings=LED | {"temperature": 0.8}).run(QUESTION)).output


@pytest.mark.parametrize(
    "question,status", [(LONG, 400), ([QUESTION, BinaryContent(PIXEL.encode(), media_type="image/png")], 400)], ids=["long", "image"]
)
async def test_refusals(agent, question, status):
    with pytest.raises(ModelHTTPError) as err:
        await agent.run(question)
    assert err.value.status_code == status and err.value.body


async def test_not_found(kind):
    with pytest.raises(ModelHTTPError) as err:
        await Agent(make(kind, "absent")).run(QUESTION)
    assert err.value.status_code == 404 and err.value.model_name == "absent"
