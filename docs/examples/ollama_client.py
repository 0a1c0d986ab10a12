"""Ollama's Python client: lists and cards of models, a chat, text, structure, tools, vectors, errors."""

import os
import sys

import ollama
from pydantic import BaseModel, Field

MODEL = os.environ.get("LUTRA_MODEL", "lutra-tiny-l")
QUESTION = {"role": "user", "content": "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"}
GREEDY = {"temperature": 0, "num_predict": 200}

client = ollama.Client(
    host=os.environ.get("LUTRA_URL", "http://127.0.0.1:8080"),
    headers={"Authorization": "Bearer " + os.environ.get("LUTRA_API_KEY", "none")},
)


def check(right, what):
    """Ends the program if an answer has not the shape it should have."""
    if not right:
        sys.exit(f"unexpected: {what}")


def models():
    names = [model.model for model in client.list().models]
    check(MODEL + ":latest" in names, names)
    card = client.show(MODEL)
    check("completion" in card.capabilities and card.details.format == "gguf", card)
    running = [model.name for model in client.ps().models]
    check(running, "nothing is loaded")
    print("models:", len(names), "names,", card.details.parameter_size, "weights,", len(running), "loaded")


def chat():
    answer = client.chat(MODEL, [QUESTION], options=GREEDY)
    check(answer.message.content and answer.done and answer.eval_count > 0, answer)
    pieces = [part.message.content for part in client.chat(MODEL, [QUESTION], stream=True, options=GREEDY)]
    check("".join(pieces) == answer.message.content and len(pieces) > 1, pieces)
    print("chat:", repr(answer.message.content), "in", len(pieces), "pieces")


def generate():
    answer = client.generate(MODEL, "What is 9 * 8?", logprobs=True, top_logprobs=2, options=GREEDY)
    check(answer.response and answer.done_reason == "stop", answer)
    check(answer.logprobs and all(len(token.top_logprobs) == 2 for token in answer.logprobs), answer.logprobs)
    print("generate:", repr(answer.response), "in", len(answer.logprobs), "tokens")
    more = client.generate(MODEL, "What is 9 * 7?", context=answer.context, options=GREEDY)
    check(more.prompt_eval_count > len(answer.context), more)
    print("generate:", repr(more.response), "behind it")


class Estimate(BaseModel):
    """What an answer is held to: these two fields and no others."""

    eggs: int = Field(ge=0, le=999)
    sure: bool


def structured():
    answer = client.chat(MODEL, [QUESTION], format=Estimate.model_json_schema(), options=GREEDY)
    print("structured:", Estimate.model_validate_json(answer.message.content))


def multiply(a: int, b: int) -> int:
    """The product of two whole numbers.

    Args:
        a: the first
        b: the second
    """
    return a * b


def tools():
    # The client makes the tool's schema of the function. Ollama's API lets the model decide whether it
    # calls one; the embedded models have never seen a tool and answer in text.
    answer = client.chat(MODEL, [QUESTION], tools=[multiply], options=GREEDY)
    history = [QUESTION, answer.message]
    for call in answer.message.tool_calls or []:
        check(call.function.name == "multiply", call)
        history.append({"role": "tool", "tool_name": call.function.name, "content": str(multiply(**call.function.arguments))})
    if len(history) > 2:
        answer = client.chat(MODEL, history, options=GREEDY)
    check(answer.message.content, answer)
    print("tools:", len(history) - 2, "calls, then", repr(answer.message.content))


def embed():
    embedder = next((m.model for m in client.list().models if "embedding" in client.show(m.model).capabilities), None)
    if embedder is None:
        print("embed: this server has no model for vectors; serve one beside the others")
        return
    vectors = client.embed(embedder, ["a hen", "an egg"]).embeddings
    check(len(vectors) == 2 and len(vectors[0]) == len(vectors[1]), vectors)
    print("embed:", len(vectors), "vectors of", len(vectors[0]))


def errors():
    try:
        client.chat("absent", [QUESTION])
    except ollama.ResponseError as err:
        check(err.status_code == 404 and "absent" in err.error, err)
        print("errors:", err.error)
    else:
        check(False, "a model that is not there")


for example in (models, chat, generate, structured, tools, embed, errors):
    example()
