"""Leads LangChain's standard suites, whose tools the embedded models would never call by themselves."""

QUOTE = 34  # the token that ends a text within JSON: tokens 0 to 255 of the embedded models are bytes

# Tests of the suites that ask more of the model than that it keeps to a form, each with what.
WIT = dict.fromkeys(("test_tool_calling", "test_tool_calling_async"), "the model must copy the number 3 from the question")
WIT |= {"test_bind_runnables_as_tools": "the model must fill a text"}
WIT |= {"test_unicode_tool_call_integration": "the model must copy Chinese letters from the question"}
ENDLESS = dict.fromkeys(
    (
        "test_structured_output",
        "test_structured_output_async",
        "test_structured_output_pydantic_2_v1",
        "test_structured_output_optional_param",
        "test_agent_loop",
        "test_tool_choice",
    ),
    "texts within JSON have no bound: the model must end them, and this API has no logit_bias",
)


def led(payload, call, answer):
    """Gives payload the tool_choice call where it has tools and none, and answer once it holds a tool's result."""
    if payload.get("tools") and "tool_choice" not in payload:
        last = (payload.get("messages") or payload.get("input"))[-1]
        done = (
            last.get("role") == "tool"
            or last.get("type") == "function_call_output"
            or any(isinstance(block, dict) and block.get("type") == "tool_result" for block in last.get("content") or ())
        )
        payload["tool_choice"] = answer if done else call
    return payload
