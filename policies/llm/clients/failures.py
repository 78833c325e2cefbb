"""Turn a provider's error response into a `ChatError` of the right kind."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping
from typing import Any

from llm_coop_envs.policies.llm.chat import ChatError, ErrorKind
from llm_coop_envs.util.fastjson import loads
from llm_coop_envs.util.keys import Key, scrub
from llm_coop_envs.util.quoting import harmless

LONGEST_MESSAGE = 300
LONGEST_WAIT = 24 * 3600.0

# A question that is too long, in the words of OpenAI, Anthropic, Gemini, Mistral, vLLM, llama.cpp and Ollama,
# such as "This model's maximum context length is 8192 tokens."
_TOO_LONG = re.compile(
    r"context[_ ]length|context window|maximum context|context size|prompt is too long|too many (?:input )?tokens|"
    r"input token count|input is too long|reduce the length|exceeds? the (?:model's )?(?:maximum|limit).{0,30}tokens|"
    r"longer than the maximum model length|string_above_max_length",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content[_ ]filter|content[_ ]policy|content management policy|responsibleaipolicy|safety system|"
    r"data_inspection_failed|moderation",
    re.IGNORECASE,
)
# A field or value that the server does not accept, such as "extra inputs are not permitted". Some servers send this
# with a status that means an internal error (llama-cpp-python).
_NOT_TAKEN = re.compile(
    r"input should be|literal_error|extra_forbidden|extra inputs are not permitted|unexpected keyword argument|"
    r"validation error|unrecognized (?:request )?argument|(?:unsupported|unknown|invalid) (?:parameter|field|value)|"
    r"(?:parse|invalid|unsupported) (?:json )?(?:grammar|schema)|"
    r"does not support (?:the )?(?:parameter|response_format)",
    re.IGNORECASE,
)
# An account without credit, such as "You exceeded your current quota".
_NO_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|billing|credit balance|payment required|out of credits",
    re.IGNORECASE,
)
# Statuses that mean one kind of failure, whatever the provider's text.
_BY_STATUS: dict[int, ErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    405: "not_found",
    408: "timeout",
    410: "not_found",
    413: "context_too_long",
}


def status_error(
    where: str, status: int, body: str, headers: Mapping[str, str] | None = None, *, key: Key | None = None
) -> ChatError:
    """Make the error for an unsuccessful HTTP response.

    Args:
        where: the endpoint as messages name it.
        status: the HTTP status.
        body: the response's body.
        headers: the response's headers.
        key: the key in use, which is removed from the message.
    """
    text, code = _read_error_body(body)
    kind = error_kind(status, f"{code} {text}")
    message = scrub(text, (key,)).strip()
    if 300 <= status < 400:
        target = next((value for name, value in (headers or {}).items() if name.lower() == "location"), "")
        target = scrub(target.partition("?")[0], (key,))
        to = f" (to {target})" if target else ""
        message = f"it sends elsewhere{to}, which is not followed: prompts and key would go there; {message}"
    if len(message) > LONGEST_MESSAGE:
        message = message[:LONGEST_MESSAGE] + "…"
    sentence = f"{where} answered {status}" + (f": {harmless(message)}" if message else "")
    return ChatError(sentence, kind=kind, status=status, retry_after=retry_after(headers or {}))


def names_parameter(text: str) -> bool:
    """Whether a server's refusal names a field or value that it does not take."""
    return _NOT_TAKEN.search(text) is not None


def error_kind(status: int, text: str) -> ErrorKind:
    """The kind of failure that an HTTP status and the provider's text mean."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status == 429:
        return "quota" if _NO_QUOTA.search(text) else "rate_limit"
    if status in (409, 425) or status >= 500:
        # llama.cpp and some gateways report a question that is too long as 500.
        if status == 500 and _TOO_LONG.search(text):
            return "context_too_long"
        return "bad_request" if status in (500, 501) and _NOT_TAKEN.search(text) else "server"
    if _FILTERED.search(text):
        return "content_filter"
    if _TOO_LONG.search(text):
        return "context_too_long"
    return "bad_request"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a provider asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date."""
    header = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = header.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            when = email.utils.parsedate_tz(value)
            if when is None:
                continue
            # Relative to the server's own clock, if it states the time: ours may be wrong.
            now = email.utils.parsedate_tz(header.get("date", ""))
            seconds = email.utils.mktime_tz(when) - (time.time() if now is None else email.utils.mktime_tz(now))
        if seconds == seconds:  # not NaN
            return min(max(seconds, 0.0), LONGEST_WAIT)
    return None


def _read_error_body(body: str) -> tuple[str, str]:
    """The message and the code in an error's body, whatever its shape."""
    try:
        data: Any = loads(body.encode("utf-8", "replace"))
    except ValueError:
        return " ".join(re.sub(r"<[^>]*>", " ", body[:4000]).split()), ""
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return error if isinstance(error, str) else body, ""
    fields = [error.get(name) for name in ("message", "detail", "code", "type")]
    message, detail, code, kind = (word if isinstance(word, str | int) else "" for word in fields)
    return str(message or detail or body), f"{code} {kind}"
