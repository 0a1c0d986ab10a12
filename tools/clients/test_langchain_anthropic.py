# /// script
# dependencies = ["langchain-anthropic", "langchain-tests", "pytest", "pytest-asyncio", "pytest-timeout"]
# ///
"""LangChain with ChatAnthropic: LangChain's standard suite."""

from typing import Literal

import anthropic
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_tests.integration_tests import ChatModelIntegrationTests
from pydantic import BaseModel

from conftest import LONG, MODEL, PIXEL, QUESTION, URL
from standard import ENDLESS, WIT, led

ASK = {"model": MODEL, "base_url": URL, "api_key": "none", "temperature": 0, "max_tokens": 100, "max_retries": 0}


class Led(ChatAnthropic):
    """Calls a tool where it has any, and answers once it has a result: the models would not do so by themselves."""

    def _get_request_payload(self, input_, *, stop=None, **kwargs):
        return led(super()._get_request_payload(input_, stop=stop, **kwargs), {"type": "any"}, {"type": "none"})


class TestChats(ChatModelIntegrationTests):
    chat_model_class = Led
    chat_model_params = ASK
    model_override_value = "lutra-tiny-s"
    supports_anthropic_inputs = True
    beyond_the_model = WIT | ENDLESS


class Order(BaseModel):
    """What answers are held to."""

    unit: Literal["eggs", "boxes"]
    sure: bool


@pytest.fixture
def model():
    return ChatAnthropic(**ASK)


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
def test_structured(model, method):
    assert isinstance(model.with_structured_output(Order, method=method).invoke(QUESTION), Order)


def test_structured_streamed(model):
    *_, last = model.with_structured_output(Order).stream(QUESTION)
    assert isinstance(last, Order)


def test_count_tokens(model):
    asked = [HumanMessage(QUESTION)]
    assert model.get_num_tokens_from_messages(asked) == model.invoke(asked).usage_metadata["input_tokens"]


def test_refusals(model):
    with pytest.raises(anthropic.BadRequestError):
        model.invoke([HumanMessage([{"type": "image", "base64": PIXEL, "mime_type": "image/png"}])])
    with pytest.raises(anthropic.BadRequestError):
        model.invoke(LONG)
    with pytest.raises(anthropic.NotFoundError):
        ChatAnthropic(**ASK | {"model": "absent"}).invoke(QUESTION)
