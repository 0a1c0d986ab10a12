# /// script
# dependencies = ["openapi-spec-validator", "pytest", "pytest-asyncio", "pytest-timeout"]
# ///
"""openapi-spec-validator: the description of the API is one of OpenAPI 3.1, and what it says of a request holds."""

import json
import urllib.request

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from conftest import MODEL, URL, USER


def description():
    with urllib.request.urlopen(URL + "/openapi.json") as answer:
        return json.load(answer)


def test_the_description_is_valid():
    OpenAPIV31SpecValidator(description()).validate()


def test_a_request_is_as_described_and_a_wrong_one_is_not():
    operation = description()["paths"]["/v1/chat/completions"]["post"]
    schema = Draft202012Validator(operation["requestBody"]["content"]["application/json"]["schema"])
    request = {"model": MODEL, "messages": [USER], "temperature": 0, "stream_options": {"include_usage": True}}
    assert schema.is_valid(request)
    assert not schema.is_valid(request | {"temperature": "hot"})
    assert not schema.is_valid(request | {"top_k": -7})
