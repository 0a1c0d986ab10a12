# /// script
# dependencies = ["llama-index-llms-openai-like", "llama-index-embeddings-openai-like", "pytest", "pytest-asyncio", "pytest-timeout"]
# ///
"""LlamaIndex: a language model and vectors that are OpenAI's in form, and an index made of both."""

import asyncio
import math

import openai
import pytest
from llama_index.core import Document, PromptTemplate, VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, Field

from conftest import CONTEXT, EMBEDDER, LONG, MODEL, PIXEL, QUESTION, URL, Estimate

SERVER = {"api_base": URL + "/v1", "api_key": "none", "max_retries": 0}
ASK = [ChatMessage(role="user", content=QUESTION)]


class Pair(BaseModel):
    a: int = Field(ge=0, le=999)
    b: int = Field(ge=0, le=999)


def make(name=MODEL, **options):
    options = {
        "temperature": 0,
        "max_tokens": 100,
        "is_chat_model": True,
        "is_function_calling_model": True,
        "context_window": CONTEXT,
    } | options
    return OpenAILike(model=name, **SERVER, **options)


@pytest.fixture(scope="session")
def llm():
    return make()


@pytest.fixture(scope="session")
def vectors():
    return OpenAILikeEmbedding(model_name=EMBEDDER, **SERVER)


@pytest.fixture(scope="session")
def multiply():
    def multiply(a: int, b: int) -> str:
        """The product of two numbers."""
        return str(a * b)

    return FunctionTool.from_defaults(multiply, fn_schema=Pair)


def test_chat(llm):
    answer = llm.chat(ASK)
    assert answer.message.role == "assistant" and answer.message.content and answer.raw.usage.completion_tokens > 0


def test_stream(llm):
    parts = list(llm.stream_chat(ASK))
    assert "".join(p.delta for p in parts) == parts[-1].message.content == llm.chat(ASK).message.content


async def test_async(llm):
    answers = await asyncio.gather(*(llm.achat(ASK) for _ in range(4)))
    assert len({a.message.content for a in answers}) == 1


async def test_async_stream(llm):
    assert "".join([p.delta async for p in await llm.astream_chat(ASK)])


def test_complete(llm):
    assert llm.complete(QUESTION).text
    assert "".join(p.delta for p in llm.stream_complete(QUESTION)) == llm.complete(QUESTION).text


def test_text_completion():
    plain = make(is_chat_model=False)
    assert plain.complete("12 * 7 =").text and list(plain.stream_complete("12 * 7 ="))


def test_system_and_several_turns(llm):
    turns = [
        ChatMessage(role="system", content="Be brief."),
        *ASK,
        ChatMessage(role="assistant", content="84"),
        ChatMessage(role="user", content="And 3 more?"),
    ]
    assert llm.chat(turns).message.content


def test_logprobs():
    assert make(logprobs=True, top_logprobs=2).chat(ASK).logprobs


def test_structured(llm):
    answer = make(should_use_structured_outputs=True).structured_predict(Estimate, PromptTemplate("{q}"), q=QUESTION)
    assert isinstance(answer, Estimate)


def test_structured_by_a_tool(llm):
    answer = llm.as_structured_llm(Estimate).chat(ASK)
    assert isinstance(answer.raw, Estimate)


def test_tools(llm, multiply):
    answer = llm.chat_with_tools([multiply], user_msg=QUESTION, tool_required=True, allow_parallel_tool_calls=False)
    (call,) = llm.get_tool_calls_from_response(answer)
    assert call.tool_name == "multiply" and set(call.tool_kwargs) == {"a", "b"}
    result = ChatMessage(role="tool", content=str(multiply(**call.tool_kwargs)), additional_kwargs={"tool_call_id": call.tool_id})
    assert llm.chat([*ASK, answer.message, result]).message.content


def test_tools_streamed(llm, multiply):
    *_, last = llm.stream_chat_with_tools([multiply], user_msg=QUESTION, tool_required=True, allow_parallel_tool_calls=False)
    assert llm.get_tool_calls_from_response(last)[0].tool_name == "multiply"


def test_predict_and_call(llm, multiply):
    assert (
        llm.predict_and_call([multiply], QUESTION, tool_required=True, allow_parallel_tool_calls=False).sources[0].tool_name == "multiply"
    )


def test_embeddings(vectors):
    one = vectors.get_text_embedding("a hen")
    assert math.hypot(*one) == pytest.approx(1, abs=1e-4)
    assert vectors.get_text_embedding_batch(["a hen", "an egg"])[0] == pytest.approx(one, abs=1e-6)


async def test_embeddings_async(vectors):
    assert len(await vectors.aget_text_embedding_batch(["a hen", "an egg"])) == 2


def test_index(llm, vectors):
    index = VectorStoreIndex.from_documents([Document(text="A box holds 12 eggs."), Document(text="Ann has 7 hens.")], embed_model=vectors)
    answer = index.as_query_engine(llm=llm, similarity_top_k=1).query("How many eggs?")
    assert len(answer.source_nodes) == 1 and answer.response


def test_search():
    plan = {"extra_body": {"test_time_scaling": {"method": "best_of_n", "n": 4}}}
    assert make(temperature=0.8, additional_kwargs=plan).chat(ASK).raw.test_time_scaling["method"] == "best_of_n"


@pytest.mark.parametrize("name,text,error", [("absent", QUESTION, openai.NotFoundError), (MODEL, LONG, openai.BadRequestError)])
def test_errors(name, text, error):
    with pytest.raises(error):
        make(name).chat([ChatMessage(role="user", content=text)])


def test_images_are_refused(llm):
    image = ImageBlock(image=PIXEL.encode(), image_mimetype="image/png")
    with pytest.raises(openai.BadRequestError):
        llm.chat([ChatMessage(role="user", blocks=[TextBlock(text="What is it?"), image])])


def test_rate_limit(guarded):
    llm = OpenAILike(
        model="lutra-tiny-s", api_base=guarded.url + "/v1", api_key=guarded.key(), max_retries=0, is_chat_model=True, max_tokens=1
    )
    with pytest.raises(openai.RateLimitError):
        for _ in range(9):
            llm.chat(ASK)
