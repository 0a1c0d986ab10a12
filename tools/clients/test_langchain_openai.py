# /// script
# dependencies = ["langchain-openai", "langchain", "langchain-tests", "pytest", "pytest-asyncio", "pytest-timeout"]
# ///
"""LangChain with ChatOpenAI, over chats and over responses, and OpenAIEmbeddings: LangChain's standard suites, and an agent."""

from typing import Literal

import openai
import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langchain_tests.integration_tests import ChatModelIntegrationTests, EmbeddingsIntegrationTests

from conftest import EMBEDDER, LONG, MODEL, PIXEL, QUESTION, URL, Estimate
from standard import ENDLESS, QUOTE, WIT, led

ASK = {
    "model": MODEL,
    "base_url": URL + "/v1",
    "api_key": "none",
    "temperature": 0,
    "max_tokens": 300,
    "max_retries": 0,
    "stream_usage": True,
}


class Led(ChatOpenAI):
    """Calls a tool where it has any, and answers once it has a result: the models would not do so by themselves."""

    def _get_request_payload(self, input_, *, stop=None, **kwargs):
        payload = super()._get_request_payload(input_, stop=stop, **kwargs)
        payload = led(payload, "required", "none")
        held = "response_format" in payload or payload.get("tool_choice", "none") != "none"
        return payload | {"logit_bias": {QUOTE: 100}} if held and "messages" in payload else payload


class TestChats(ChatModelIntegrationTests):
    chat_model_class = Led
    chat_model_params = ASK
    model_override_value = "lutra-tiny-s"
    supports_json_mode = False  # its texts have no bound
    supports_image_inputs = supports_audio_inputs = supports_pdf_inputs = False  # the server reads text alone
    beyond_the_model = WIT


class TestResponses(TestChats):
    chat_model_params = ASK | {"use_responses_api": True}
    beyond_the_model = WIT | ENDLESS


class TestEmbeddings(EmbeddingsIntegrationTests):
    embeddings_class = OpenAIEmbeddings
    embedding_model_params = {"model": EMBEDDER, "base_url": URL + "/v1", "api_key": "none", "check_embedding_ctx_length": False}


@pytest.fixture(params=["chats", "responses"])
def model(request):
    return ChatOpenAI(**ASK, use_responses_api=request.param == "responses")


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured(model, method):
    answer = model.with_structured_output(Estimate, method=method, include_raw=True).invoke(QUESTION)
    assert isinstance(answer["parsed"], Estimate) and answer["parsing_error"] is None


async def test_events(model):
    kinds = {event["event"] async for event in model.astream_events(QUESTION)}
    assert {"on_chat_model_start", "on_chat_model_stream", "on_chat_model_end"} <= kinds


def test_logprobs():
    answer = ChatOpenAI(**ASK, logprobs=True, top_logprobs=2).invoke(QUESTION)
    assert all(len(token["top_logprobs"]) == 2 for token in answer.response_metadata["logprobs"]["content"])


def test_choices():
    (choices,) = ChatOpenAI(**ASK | {"temperature": 1}, n=3).generate([[HumanMessage(QUESTION)]]).generations
    assert len(choices) == 3


def test_search():
    answer = ChatOpenAI(**ASK | {"temperature": 0.8}, extra_body={"test_time_scaling": {"method": "best_of_n", "n": 4}}).invoke(QUESTION)
    assert answer.content and answer.usage_metadata["output_tokens"] > 0


def test_agent(model):
    """An agent that a ToolStrategy makes answer by a call."""
    runner = create_agent(model, response_format=ToolStrategy(Estimate))
    assert isinstance(runner.invoke({"messages": [HumanMessage(QUESTION)]})["structured_response"], Estimate)


def test_tool_results(model):
    @tool
    def add(a: Literal[1, 2], b: Literal[3, 4]) -> int:
        """The sum of two numbers."""
        return a + b

    first = model.bind_tools([add], tool_choice="any", parallel_tool_calls=False).invoke(QUESTION)
    result = add.invoke(first.tool_calls[0])
    assert result.status == "success" and model.bind_tools([add], tool_choice="none").invoke([HumanMessage(QUESTION), first, result]).text


def test_refusals(model):
    with pytest.raises(openai.BadRequestError):
        model.invoke([HumanMessage([{"type": "image", "base64": PIXEL, "mime_type": "image/png"}])])
    with pytest.raises(openai.BadRequestError):
        model.invoke(LONG)
    with pytest.raises(openai.NotFoundError):
        ChatOpenAI(**ASK | {"model": "absent"}).invoke(QUESTION)
