# /// script
# dependencies = ["langchain-ollama", "langchain-tests", "pytest", "pytest-asyncio", "pytest-timeout"]
# ///
"""LangChain with ChatOllama and OllamaEmbeddings: LangChain's standard suites."""

import ollama
import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM
from langchain_tests.integration_tests import ChatModelIntegrationTests, EmbeddingsIntegrationTests

from conftest import EMBEDDER, LONG, MODEL, PIXEL, QUESTION, URL, Estimate
from standard import ENDLESS, WIT

ASK = {"model": MODEL, "base_url": URL, "temperature": 0, "num_predict": 100}


class TestChats(ChatModelIntegrationTests):
    chat_model_class = ChatOllama
    chat_model_params = ASK
    model_override_value = "lutra-tiny-s"
    has_tool_choice = False  # of Ollama's API
    supports_json_mode = False  # its texts have no bound
    beyond_the_model = (
        WIT | ENDLESS | dict.fromkeys(["test_tool_calling_with_no_arguments"], "the models call no tool, and Ollama's API cannot demand it")
    )


class TestEmbeddings(EmbeddingsIntegrationTests):
    embeddings_class = OllamaEmbeddings
    embedding_model_params = {"model": EMBEDDER, "base_url": URL}


@pytest.fixture
def model():
    return ChatOllama(**ASK)


def test_structured(model):
    assert isinstance(model.with_structured_output(Estimate, method="json_schema").invoke(QUESTION), Estimate)


def test_logprobs():
    assert ChatOllama(**ASK, logprobs=True, top_logprobs=2).invoke(QUESTION).response_metadata["logprobs"]


def test_tools_are_shown(model):
    @tool
    def add(a: int, b: int) -> int:
        """The sum of two numbers."""
        return a + b

    plain, shown = (m.invoke(QUESTION).usage_metadata["input_tokens"] for m in (model, model.bind_tools([add])))
    assert shown > plain


def test_text_models():
    model = OllamaLLM(model=MODEL, base_url=URL, temperature=0, num_predict=50)
    assert model.invoke(QUESTION) == "".join(model.stream(QUESTION))


def test_refusals(model):
    with pytest.raises(ollama.ResponseError):
        model.invoke([HumanMessage([{"type": "image_url", "image_url": "data:image/png;base64," + PIXEL}])])
    with pytest.raises(ollama.ResponseError):
        model.invoke(LONG)
    with pytest.raises(ollama.ResponseError):
        ChatOllama(**ASK | {"model": "absent"}).invoke(QUESTION)
