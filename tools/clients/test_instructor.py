# /// script
# dependencies = ["instructor", "anthropic", "pytest", "pytest-asyncio", "pytest-timeout"]
# ///
"""Instructor over OpenAI's and Anthropic's clients: answers as pydantic models, in each of its modes."""

from typing import Annotated, Literal

import anthropic
import instructor
import openai
import pytest
from instructor.core import InstructorRetryException
from pydantic import AfterValidator, BaseModel

from conftest import LONG, MODEL, URL, USER

ASK = {"model": MODEL, "messages": [USER], "max_tokens": 200}
OPENAI_MODES = [instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA]


class Order(BaseModel):
    """What answers are held to."""

    unit: Literal["eggs", "boxes"]
    sure: bool


def chats(mode=instructor.Mode.TOOLS):
    return instructor.from_openai(openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0), mode=mode)


def messages(mode=instructor.Mode.TOOLS):
    return instructor.from_anthropic(anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0), mode=mode)


@pytest.mark.parametrize("mode", OPENAI_MODES)
def test_chats(mode):
    assert isinstance(chats(mode).create(response_model=Order, temperature=0, **ASK), Order)


def test_messages():
    assert isinstance(messages().create(response_model=Order, **ASK), Order)


async def test_async():
    client = instructor.from_openai(openai.AsyncOpenAI(base_url=URL + "/v1", api_key="none"))
    assert isinstance(await client.create(response_model=Order, **ASK), Order)


async def test_async_messages():
    client = instructor.from_anthropic(anthropic.AsyncAnthropic(base_url=URL, api_key="none"))
    assert isinstance(await client.create(response_model=Order, **ASK), Order)


@pytest.mark.parametrize("make", [chats, messages])
def test_with_completion(make):
    order, completion = make().create_with_completion(response_model=Order, **ASK)
    assert isinstance(order, Order) and completion.usage


@pytest.mark.parametrize("make", [chats, messages])
def test_partial(make):
    *_, last = make().create_partial(response_model=Order, **ASK)
    assert last.unit in ("eggs", "boxes") and last.sure in (True, False)


def test_list():
    class Orders(BaseModel):
        orders: Annotated[list[Order], "two of them"]

    schema = chats(instructor.Mode.JSON_SCHEMA).create(response_model=Orders, **ASK | {"max_tokens": 900, "temperature": 1, "seed": 3})
    assert all(isinstance(order, Order) for order in schema.orders)


def test_enum():
    assert chats().create(response_model=Literal["eggs", "boxes"], **ASK) in ("eggs", "boxes")


@pytest.mark.parametrize("make", [chats, messages])
def test_asked_again(make):
    """A validator that fails once: Instructor sends the error back as the tool's result."""
    seen = []

    def once(unit):
        seen.append(unit)
        if len(seen) == 1:
            raise ValueError("not yet")
        return unit

    class Checked(BaseModel):
        unit: Annotated[Literal["eggs", "boxes"], AfterValidator(once)]

    assert make().create(response_model=Checked, max_retries=2, **ASK).unit in ("eggs", "boxes") and len(seen) == 2


def test_gives_up():
    class Never(BaseModel):
        unit: Annotated[Literal["eggs"], AfterValidator(lambda unit: (_ for _ in ()).throw(ValueError("never")))]

    with pytest.raises(InstructorRetryException) as err:
        chats().create(response_model=Never, max_retries=2, **ASK)
    assert err.value.n_attempts > 1


def test_without_a_model():
    assert chats().create(response_model=None, **ASK).choices[0].message.content


def test_hooks():
    seen, client = [], chats()
    client.on("completion:response", lambda response: seen.append(response.model))
    client.create(response_model=Order, **ASK)
    assert seen == [MODEL]


def test_search():
    assert isinstance(chats(instructor.Mode.JSON_SCHEMA).create(response_model=Order, **ASK | {"model": MODEL + "+sc8"}), Order)


@pytest.mark.parametrize("make", [chats, messages])
@pytest.mark.parametrize("change", [{"model": "absent"}, {"messages": [{"role": "user", "content": LONG}]}], ids=["absent", "long"])
def test_errors(make, change):
    with pytest.raises((InstructorRetryException, openai.APIStatusError, anthropic.APIStatusError)):
        make().create(response_model=Order, max_retries=0, **ASK | change)
