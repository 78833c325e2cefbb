"""What stands in an answer and is no part of it: template tokens, signs that cannot be seen, and thoughts.

Nothing of this may reach another player's prompt, so it is removed after JSON has been decoded, and until nothing of it
is left. Every pattern takes linear time.
"""

from __future__ import annotations

import re

#: Flags: template tokens were removed; signs that cannot be seen were; the answer was too long and was cut.
TEMPLATE_TOKENS = "template_tokens"
INVISIBLE = "invisible"
TOO_LONG = "too_long"

# Signs of width zero, controls of direction, variation selectors, tags, fillers and annotations; and private signs,
# which the readers use.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\ue000-\uf8ff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_FAMILIES = (
    # ChatML (Qwen, Yi, Phi), Llama 3 and 4, GPT-OSS's harmony, Command-R, Granite, GLM, Kimi, Jamba; DeepSeek and
    # Hunyuan with bars of full width.
    r"[<\uff1c] ?/?[|\uff5c][^<>|\n\uff1c\uff1e\uff5c]{1,60}[|\uff5c] ?[>\uff1e]",
    # Llama 2
    r"<</?SYS>>",
    # Mistral
    r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID|ARGS|MODEL_SETTINGS|THINK"
    r"|PREFIX|MIDDLE|SUFFIX|IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|REF|/REF)\]",
    # SentencePiece and BERT
    r"</?s>|<(?:bos|eos|pad|unk|mask|sep|cls|eod|eot|eom|eop|sop|0x[0-9a-f]{2}|unused\d{1,4}|extra_id_\d{1,4})>"
    r"|\[(?:BOS|EOS|PAD|UNK|CLS|SEP|G?MASK|sMASK)\]",
    # Gemma
    r"<(?:start|end)_of_(?:turn|image|audio|text)>|<(?:start|end)_(?:function_(?:call|response|declaration))>",
    # EXAONE, MiniMax, Seed, Nemotron, OLMo's and InternLM's older ones
    r"\[\|[^\[\]|\n]{1,40}\|\]|\]~[!b]?b?\[|\[e~\[|<\[[^<>\[\]\n]{1,40}\]>|<seed:[a-z_]{1,20}>|<SPECIAL_\d{1,4}>"
    r"|<eo[a-z]>",
    # Tools
    r"</?(?:tool_calls?|tool_response|tools|function_calls?|functions)>",
)
_TEMPLATE = re.compile(rf"(?=[<\[\]\uff1c])(?:{'|'.join(_FAMILIES)})", re.IGNORECASE)
# So often tokens are removed that came about by removing others; then their brackets are.
_PASSES = 8
_BRACKETS = re.compile(r"[<>|\[\]\uff1c\uff1e\uff5c]")

_NAMES = (
    r"(?:seed:)?(?:think(?:ing)?|thoughts?|reasoning|scratchpad|reflection|analysis|(?:inner_?|internal_)?monologue"
    r"|antthinking|internal)"
)
_TAG = re.compile(
    rf"[<\u25c1]\|?(?P<close>/)?{_NAMES}(?: [^<>\n]{{0,80}})?\|?[>\u25b7]"
    r"|<\|(?:begin|start)_(?:of_)?(?:thought|thinking)\|>|<\|(?P<end>end)_(?:of_)?(?:thought|thinking)\|>"
    rf"|\[(?P<square>/)?(?P<word>{_NAMES})\]",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"(?P<open>[\[({*])(?:thinking|thinks?|thoughts?|reasoning|internal"
    r"|inner monologue)\b ?[:;,][^\[\](){}*]{0,2000}[\])}*]",
    re.IGNORECASE,
)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>\s?final\b[^<\n]{0,40}<\|message\|>", re.IGNORECASE)
_OTHER_CHANNEL = re.compile(r"<\|channel\|>", re.IGNORECASE)

#: Longer answers are cut at once; and again without thoughts. Their beginning and end are where an answer would stand.
LONGEST = 16_000
MAX_LENGTH = 2_800


def shorten(text: str, longest: int = MAX_LENGTH) -> str:
    """The beginning and the end of an answer that is too long to be one."""
    if len(text) <= longest:
        return text
    return text[: longest // 4] + "\n" + text[longest // 4 - longest :]


def without_tokens(text: str) -> tuple[str, tuple[str, ...]]:
    """A text without template tokens and signs that cannot be seen, and flags for what was removed."""
    flags: tuple[str, ...] = ()
    if not text.isascii():
        seen = _INVISIBLE.sub("", text)
        flags, text = (INVISIBLE,) if seen != text else (), seen
    before, passes = None, 0
    start = text
    while text != before and ("<" in text or "[" in text or "\uff1c" in text or "]" in text):
        before, passes = text, passes + 1
        text = _TEMPLATE.sub("", text)
        if passes == _PASSES and text != before:
            text = _BRACKETS.sub("", text)
    return text, flags if text == start else (*flags, TEMPLATE_TOKENS)


def spoken(text: str) -> str:
    """An answer without the model's thoughts.

    Thoughts that were opened and not closed go to the end; if only their end is there, they began before it.
    """
    if "<|channel|>" in text.lower():
        finals = list(_FINAL_CHANNEL.finditer(text))
        text = text[finals[-1].end() :] if finals else text
        other = _OTHER_CHANNEL.search(text)
        text = text[: other.start()] if other else text
    if not any(sign in text for sign in "<[({*\u25c1"):
        return text.strip()
    kept: list[str] = []
    at, opened = 0, False
    closed = "[/" in text
    for tag in _TAG.finditer(text):
        if tag["close"] or tag["end"] or tag["square"]:
            if not opened:
                kept = []
            opened, at = False, tag.end()
        elif not opened and (tag["word"] is None or closed or tag["word"].lower() == "think"):
            kept.append(text[at : tag.start()])
            opened = True
    if not opened:
        kept.append(text[at:])
    return _ASIDE.sub("\n", "".join(kept)).strip()
