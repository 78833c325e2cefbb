"""From what a provider said when it failed to one of our kinds of error."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping
from typing import Any

from llm_coop_envs.policies.llm.chat import ChatError, ErrorKind
from llm_coop_envs.policies.llm.fastjson import loads
from llm_coop_envs.util.keys import Key, scrub
from llm_coop_envs.util.quoting import harmless

LONGEST_MESSAGE = 300
LONGEST_WAIT = 24 * 3600.0

# How OpenAI, Anthropic, Gemini, Mistral, vLLM, llama.cpp and Ollama say that a question is too long.
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
# How servers say that they do not take a field or its value; some with a status that means trouble (llama-cpp-python).
_NOT_TAKEN = re.compile(
    r"input should be|literal_error|extra_forbidden|extra inputs are not permitted|unexpected keyword argument|"
    r"validation error|unrecognized (?:request )?argument|(?:unsupported|unknown|invalid) (?:parameter|field|value)|"
    r"(?:parse|invalid|unsupported) (?:json )?(?:grammar|schema)|"
    r"does not support (?:the )?(?:parameter|response_format)",
    re.IGNORECASE,
)
_NO_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|billing|credit balance|payment required|out of credits",
    re.IGNORECASE,
)


def status_error(
    where: str, status: int, body: str, headers: Mapping[str, str] | None = None, *, key: Key | None = None
) -> ChatError:
    """The error for an HTTP answer that is no success; the key in use is kept out of its message."""
    said, code = _what_was_said(body)
    kind = kind_of(status, f"{code} {said}")
    message = scrub(said, (key,)).strip()
    if 300 <= status < 400:
        message = f"it sends elsewhere, which is not followed: prompts and key would go there; {message}"
    if len(message) > LONGEST_MESSAGE:
        message = message[:LONGEST_MESSAGE] + "…"
    sentence = f"{where} answered {status}" + (f": {harmless(message)}" if message else "")
    return ChatError(sentence, kind=kind, status=status, retry_after=retry_after(headers or {}))


def kind_of(status: int, said: str) -> ErrorKind:
    """Which kind of failure an HTTP status means, given the provider's words."""
    if status == 429:
        return "quota" if _NO_QUOTA.search(said) else "rate_limit"
    if status == 402:
        return "quota"
    if status in (401, 403):
        return "auth"
    if status in (404, 405, 410):
        return "not_found"
    if status == 408:
        return "timeout"
    if status == 413:
        return "context_too_long"
    if status in (409, 425) or status >= 500:
        # llama.cpp and some gateways report a question that is too long as 500.
        if status == 500 and _TOO_LONG.search(said):
            return "context_too_long"
        return "bad_request" if status in (500, 501) and _NOT_TAKEN.search(said) else "server"
    if _FILTERED.search(said):
        return "content_filter"
    if _TOO_LONG.search(said):
        return "context_too_long"
    return "bad_request"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a provider asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date."""
    found = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = found.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            when = email.utils.parsedate_tz(value)
            if when is None:
                continue
            # Against the server's own clock, if it says what time it is: ours may be wrong.
            now = email.utils.parsedate_tz(found.get("date", ""))
            seconds = email.utils.mktime_tz(when) - (time.time() if now is None else email.utils.mktime_tz(now))
        if seconds == seconds:  # not NaN
            return min(max(seconds, 0.0), LONGEST_WAIT)
    return None


def _what_was_said(body: str) -> tuple[str, str]:
    """The sentence and the code in an error's body, whatever its shape."""
    try:
        data: Any = loads(body.encode("utf-8", "replace"))
    except ValueError:
        return " ".join(re.sub(r"<[^>]*>", " ", body[:4000]).split()), ""
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return error if isinstance(error, str) else body, ""
    words = [error.get(name) for name in ("message", "detail", "code", "type")]
    message, detail, code, kind = (word if isinstance(word, str | int) else "" for word in words)
    return str(message or detail or body), f"{code} {kind}"
