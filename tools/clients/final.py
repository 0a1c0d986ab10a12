"""An agent with a tool and an answer that is held to a schema, by one of several libraries.

  python final.py agents|pydantic_ai|langchain|instructor chats|responses|messages

The model at LUTRA_URL calls multiply and answers an Estimate then (server/programs_test.go).
"""

import json
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


def by_instructor():
    """Instructor runs no tools by itself: its user does, and the answer is of the model's class then."""
    import instructor
    import openai

    client = instructor.from_openai(openai.OpenAI(base_url=URL + "/v1", api_key="none"), mode=instructor.Mode.JSON_SCHEMA)
    integer = {"type": "integer"}
    parameters = {"type": "object", "properties": {"a": integer, "b": integer}, "required": ["a", "b"], "additionalProperties": False}
    function = {"name": "multiply", "description": multiply.__doc__, "parameters": parameters, "strict": True}
    messages, tools = [{"role": "user", "content": QUESTION}], [{"type": "function", "function": function}]
    final = {"type": "json_schema", "json_schema": {"name": "Estimate", "schema": Estimate.model_json_schema()}}
    asked = client.create(model=MODEL, messages=messages, tools=tools, response_format=final, response_model=None)
    message = asked.choices[0].message
    messages.append({"content": None} | message.model_dump(exclude_none=True))  # Instructor looks for content
    for call in message.tool_calls:
        product = multiply(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": str(product)})
    return client.create(model=MODEL, messages=messages, tools=tools, response_model=Estimate)


print(repr({"agents": by_agents, "pydantic_ai": by_pydantic_ai, "langchain": by_langchain, "instructor": by_instructor}[library]()))
