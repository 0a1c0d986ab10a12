"""An agent with a tool and an answer that is held to a schema, by one of several libraries.

  python final.py agents|pydantic_ai|langchain chats|responses|messages

The model at LUTRA_URL calls multiply and answers an Estimate then (server/programs_test.go).
"""

import os
import sys

from pydantic import BaseModel

URL, MODEL, QUESTION = os.environ["LUTRA_URL"], "toy", "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"
library, api = sys.argv[1:]


class Estimate(BaseModel):
    eggs: int
    sure: bool


def multiply(a: int, b: int) -> int:
    """The product of two numbers."""
    print("called with", a, b)
    return a * b


def by_agents():
    import openai
    from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled

    set_tracing_disabled(True)
    kind = OpenAIResponsesModel if api == "responses" else OpenAIChatCompletionsModel
    model = kind(model=MODEL, openai_client=openai.AsyncOpenAI(base_url=URL + "/v1", api_key="none"))
    agent = Agent(name="counter", model=model, tools=[function_tool(multiply)], output_type=Estimate)
    return Runner.run_sync(agent, QUESTION).final_output


def by_pydantic_ai():
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    if api == "messages":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        profile = {"supports_json_schema_output": True}
        model = AnthropicModel(MODEL, provider=AnthropicProvider(base_url=URL, api_key="none"), profile=profile)
    else:
        kind = OpenAIResponsesModel if api == "responses" else OpenAIChatModel
        model = kind(MODEL, provider=OpenAIProvider(base_url=URL + "/v1", api_key="none"))
    return Agent(model, output_type=NativeOutput(Estimate), tools=[multiply]).run_sync(QUESTION).output


def by_langchain():
    from langchain.agents import create_agent
    from langchain.agents.structured_output import ProviderStrategy
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, base_url=URL + "/v1", api_key="none", use_responses_api=api == "responses")
    agent = create_agent(model, [multiply], response_format=ProviderStrategy(Estimate))
    return agent.invoke({"messages": [("user", QUESTION)]})["structured_response"]


print(repr({"agents": by_agents, "pydantic_ai": by_pydantic_ai, "langchain": by_langchain}[library]()))
