"""LangChain: an agent with two tools, a structured answer and a stream."""

import os
import sys

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

MODEL = os.environ.get("LUTRA_MODEL", "default")
QUESTION = "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"

model = ChatOpenAI(
    base_url=os.environ.get("LUTRA_URL", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ.get("LUTRA_API_KEY", "none"),
    model=MODEL,
    temperature=0,
    max_tokens=200,
)


def check(right, what):
    """Ends the program if an answer has not the shape it should have."""
    if not right:
        sys.exit(f"unexpected: {what}")


class Pair(BaseModel):
    a: int = Field(ge=0, le=999)
    b: int = Field(ge=0, le=999)


@tool(args_schema=Pair)
def add(a: int, b: int) -> int:
    """The sum of two whole numbers."""
    return a + b


@tool(args_schema=Pair)
def multiply(a: int, b: int) -> int:
    """The product of two whole numbers."""
    return a * b


@wrap_model_call
def led(request, handler):
    """Leads the agent by the hand: multiply, then add, then answer."""
    results = sum(isinstance(m, ToolMessage) for m in request.messages)
    return handler(request.override(tool_choice=("multiply", "add", "none")[min(results, 2)]))


def agent():
    # The embedded models have never seen a tool, so they are led. Models that know tools are not.
    untaught = MODEL == "default" or MODEL.startswith("lutra-tiny")
    runner = create_agent(model, [add, multiply], middleware=[led] if untaught else [])
    messages = runner.invoke({"messages": [{"role": "user", "content": QUESTION}]})["messages"]
    for message in messages:
        for call in getattr(message, "tool_calls", []):
            print("agent: calls", call["name"], call["args"])
        if isinstance(message, ToolMessage):
            print("agent: reads", message.content)
    results = [m.name for m in messages if isinstance(m, ToolMessage)]
    check(results == ["multiply", "add"] or not untaught, results)
    check(isinstance(messages[-1], AIMessage) and messages[-1].content and not messages[-1].tool_calls, messages[-1])
    print("agent: answers", repr(messages[-1].content))


class Estimate(BaseModel):
    """What an answer is held to."""

    eggs: int = Field(ge=0, le=999)
    sure: bool


def structured():
    estimate = model.with_structured_output(Estimate, method="json_schema").invoke(QUESTION)
    check(isinstance(estimate, Estimate), estimate)
    print("structured:", estimate)


def stream():
    pieces = [chunk.text for chunk in model.stream(QUESTION)]
    check(len(pieces) > 1 and "".join(pieces), pieces)
    print("stream:", len(pieces), "chunks")


for example in (agent, structured, stream):
    example()
