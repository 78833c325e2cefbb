import json
import time
from email.utils import formatdate

import pytest

from llm_coop_envs.policies.llm.clients.failures import error_kind, retry_after, status_error
from llm_coop_envs.util.keys import Key

# What providers and servers really say.
SAID = [
    (429, "Rate limit reached for gpt-4o-mini in organization on requests per min (RPM): Limit 500", "rate_limit"),
    (429, "insufficient_quota You exceeded your current quota, please check your plan and billing details.", "quota"),
    (429, "Too many requests", "rate_limit"),
    (402, "Insufficient Balance", "quota"),
    (401, "Incorrect API key provided", "auth"),
    (403, "Country, region, or territory not supported", "auth"),
    (404, "The model `gpt-5000` does not exist or you do not have access to it.", "not_found"),
    (404, 'model "llama9" not found, try pulling it first', "not_found"),
    (408, "Request timeout", "timeout"),
    (409, "conflict", "server"),
    (413, "Request Entity Too Large", "context_too_long"),
    (
        400,
        "context_length_exceeded This model's maximum context length is 8192 tokens. However, ...",
        "context_too_long",
    ),
    (400, "prompt is too long: 210000 tokens > 200000 maximum", "context_too_long"),
    (400, "The input token count (1100000) exceeds the maximum number of tokens allowed", "context_too_long"),
    (400, "the request exceeds the available context size. try increasing the context size", "context_too_long"),
    (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192", "context_too_long"),
    (500, "the request exceeds the available context size", "context_too_long"),
    (
        400,
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy",
        "content_filter",
    ),
    (400, "content_policy_violation Your request was rejected as a result of our safety system.", "content_filter"),
    (400, "Unsupported value: 'temperature' does not support 0.7 with this model.", "bad_request"),
    (
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'",
        "bad_request",
    ),
    (422, "Unprocessable", "bad_request"),
    (500, "The server had an error", "server"),
    (502, "Bad gateway", "server"),
    (503, "Overloaded", "server"),
    (529, "overloaded_error", "server"),
    (301, "Moved", "bad_request"),
    # Refusals of a parameter with a status that means trouble.
    (500, "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': ...", "bad_request"),
    (500, "1 validation error for Body: temperature: Input should be less than or equal to 1", "bad_request"),
    (500, "create() got an unexpected keyword argument 'reasoning_effort'", "bad_request"),
    (501, "Unsupported parameter: response_format", "bad_request"),
    (500, "CUDA out of memory", "server"),
    (502, "Input should be", "server"),
]


@pytest.mark.parametrize(("status", "said", "kind"), SAID)
def test_what_a_status_means(status, said, kind):
    assert error_kind(status, said) == kind


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (json.dumps({"error": {"message": "No such model.", "code": "model_not_found"}}), "No such model."),
        (json.dumps({"error": "model not loaded"}), "model not loaded"),
        (json.dumps({"detail": "Not Found"}), "Not Found"),
        (json.dumps({"message": "nope"}), "nope"),
        ("<html><body><h1>502 Bad\n Gateway</h1></body></html>", "502 Bad Gateway"),
        ("plain", "plain"),
        ("", None),
    ],
)
def test_what_was_said_is_found(body, said):
    expected = "there answered 502" + (f": {said}" if said else "")
    assert str(status_error("there", 502, body)) == expected


def test_the_code_counts_too():
    body = json.dumps({"error": {"message": "Sorry.", "code": "context_length_exceeded"}})
    assert status_error("there", 400, body).kind == "context_too_long"


def test_long_messages_are_cut_and_keys_taken_out():
    body = json.dumps({"error": {"message": "secret-key-value " + "x" * 5000}})
    error = status_error("there", 500, body, key=Key("secret-key-value"))
    assert len(str(error)) < 400
    assert "secret-key-value" not in str(error)
    assert "[hidden]" in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After-Ms": "250", "Retry-After": "7"}, 0.25),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "86400"}, 86_400.0),
        ({"Retry-After": "1e30"}, 86_400.0),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "soon"}, None),
    ],
)
def test_how_long_to_wait(headers, seconds):
    assert retry_after(headers) == seconds


def test_a_date_to_wait_for():
    found = retry_after({"Retry-After": formatdate(time.time() + 100, usegmt=True)})
    assert found == pytest.approx(100, abs=2)
    assert retry_after({"Retry-After": formatdate(0, usegmt=True)}) == 0.0


def test_a_date_is_read_against_the_servers_clock():
    """Ours may be wrong by hours."""
    headers = {"Date": formatdate(5_000_000, usegmt=True), "Retry-After": formatdate(5_000_030, usegmt=True)}
    assert retry_after(headers) == 30.0
    assert retry_after({**headers, "Date": "nonsense"}) == 0.0
