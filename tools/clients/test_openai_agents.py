# /// script
# dependencies = ["openai-agents", "pytest", "pytest-asyncio", "pytest-timeout"]
# ///
"""OpenAI's agents SDK, over responses and over chats.

The embedded models make no call of their own accord: they are led by tool_choice, which the SDK
takes back once a call was made, so that the next turn is an answer.
"""

from typing import Annotated

import agents
import openai
import pytest
from agents import Agent, ModelSettings, RunConfig, Runner, SQLiteSession, function_tool, handoff
from pydantic import Field

from conftest import LONG, MODEL, PIXEL, QUESTION, URL, Estimate

agents.set_tracing_disabled(True)
LED = {"temperature": 0, "max_tokens": 300, "parallel_tool_calls": False}
Number = Annotated[int, Field(ge=0, le=999)]


@pytest.fixture(scope="session", params=["responses", "chat"])
def model(request):
    client = openai.AsyncOpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
    kind = agents.OpenAIResponsesModel if request.param == "responses" else agents.OpenAIChatCompletionsModel
    return kind(model=MODEL, openai_client=client)


def agent(model, **options):
    settings = ModelSettings(**LED | options.pop("settings", {}))
    return Agent(name="counter", instructions="Be brief.", model=model, model_settings=settings, **options)


@function_tool
def multiply(a: Number, b: Number) -> str:
    """The product of two numbers."""
    return str(a * b)


async def test_run(model):
    result = await Runner.run(agent(model), QUESTION)
    assert result.final_output and result.context_wrapper.usage.output_tokens > 0


def test_run_sync(model):
    assert agent(model).name == "counter"


async def test_stream(model):
    run = Runner.run_streamed(agent(model), QUESTION)
    kinds, text = set(), ""
    async for event in run.stream_events():
        kinds.add(event.type)
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            text += event.data.delta
    assert text == run.final_output and "run_item_stream_event" in kinds


async def test_output_type(model):
    result = await Runner.run(agent(model, output_type=Estimate), QUESTION)
    assert isinstance(result.final_output, Estimate)


@pytest.mark.parametrize("choice", ["required", "multiply"])
async def test_tool(model, choice):
    result = await Runner.run(agent(model, tools=[multiply], settings={"tool_choice": choice}), QUESTION, max_turns=4)
    kinds = [item.type for item in result.new_items]
    assert kinds[:2] == ["tool_call_item", "tool_call_output_item"] and kinds[-1] == "message_output_item"
    assert result.final_output


async def test_tool_streamed(model):
    run = Runner.run_streamed(agent(model, tools=[multiply], settings={"tool_choice": "required"}), QUESTION, max_turns=4)
    names = [event.name async for event in run.stream_events() if event.type == "run_item_stream_event"]
    assert names[:2] == ["tool_called", "tool_output"] and names[-1] == "message_output_created"


async def test_a_tools_result_ends_the_run(model):
    result = await Runner.run(
        agent(model, tools=[multiply], tool_use_behavior="stop_on_first_tool", settings={"tool_choice": "required"}), QUESTION
    )
    assert result.final_output.isdigit()


async def test_too_many_turns(model):
    with pytest.raises(agents.MaxTurnsExceeded):
        await Runner.run(
            agent(model, tools=[multiply], reset_tool_choice=False, settings={"tool_choice": "required"}), QUESTION, max_turns=2
        )


async def test_handoff(model):
    other = agent(model, handoff_description="Knows hens.").clone(name="farmer")
    result = await Runner.run(agent(model, handoffs=[handoff(other)], settings={"tool_choice": "required"}), QUESTION, max_turns=4)
    assert result.last_agent is other and result.final_output


async def test_agent_as_tool(model):
    """An agent's input is a text without a bound, so the call is written by the test and only its result is read."""
    tool = agent(model).as_tool("ask_counter", "Asks a counter.")
    result = await Runner.run(agent(model, tools=[tool]), QUESTION)
    assert result.final_output


async def test_session(model):
    session = SQLiteSession("s")
    await Runner.run(agent(model), QUESTION, session=session)
    second = await Runner.run(agent(model), "And 3 more?", session=session)
    assert second.final_output and len(await session.get_items()) == 4


async def test_history_as_input(model):
    first = await Runner.run(agent(model, tools=[multiply], settings={"tool_choice": "required"}), QUESTION, max_turns=4)
    again = first.to_input_list() + [{"role": "user", "content": "And 3 more?"}]
    assert (await Runner.run(agent(model, tools=[multiply]), again)).final_output


async def test_guardrail(model):
    @agents.input_guardrail
    async def never(context, agent, input):
        return agents.GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    with pytest.raises(agents.InputGuardrailTripwireTriggered):
        await Runner.run(agent(model, input_guardrails=[never]), QUESTION)


async def test_search(model):
    name = MODEL + "+bon8"
    client = openai.AsyncOpenAI(base_url=URL + "/v1", api_key="none")
    result = await Runner.run(
        agent(type(model)(model=name, openai_client=client), settings={"temperature": 0.8}),
        QUESTION,
        run_config=RunConfig(tracing_disabled=True),
    )
    assert result.final_output


async def test_images_are_refused(model):
    image = {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64," + PIXEL, "detail": "auto"}]}
    with pytest.raises(openai.BadRequestError):
        await Runner.run(agent(model), [image])


async def test_long_context(model):
    with pytest.raises(openai.BadRequestError) as err:
        await Runner.run(agent(model), LONG)
    assert err.value.code == "context_length_exceeded"


async def test_previous_response():
    client = openai.AsyncOpenAI(base_url=URL + "/v1", api_key="none")
    model = agents.OpenAIResponsesModel(model=MODEL, openai_client=client)
    first = await Runner.run(agent(model), QUESTION)
    second = await Runner.run(agent(model), "And 3 more?", previous_response_id=first.last_response_id)
    assert second.final_output and second.context_wrapper.usage.input_tokens > first.context_wrapper.usage.input_tokens
