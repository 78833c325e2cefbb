"""Removing what is no part of an answer: template tokens, invisible characters, and thoughts.

None of it may reach another player's prompt. So it is removed after JSON has been decoded, and again until none is
left. Every pattern takes linear time.
"""

from __future__ import annotations

import re

#: Flags: template tokens were removed; invisible characters were removed; the answer was too long and was cut.
TEMPLATE_TOKENS = "template_tokens"
INVISIBLE = "invisible"
TOO_LONG = "too_long"

# Characters of width zero, controls of direction, variation selectors, tags, fillers and annotations; and private
# characters, which the readers use themselves.
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
# Removing a token may join others ("<|a<|b|>|>"). It is repeated so often; then all brackets are removed.
_PASSES = 8
_BRACKETS = re.compile(r"[<>|\[\]\uff1c\uff1e\uff5c]")

_THOUGHT_NAMES = (
    r"(?:seed:)?(?:think(?:ing)?|thoughts?|reasoning|scratchpad|reflection|analysis|(?:inner_?|internal_)?monologue"
    r"|antthinking|internal)"
)
# "<think>", "</thinking>", "<|begin_of_thought|>", "[/THINK]"
_TAG = re.compile(
    rf"[<\u25c1]\|?(?P<close>/)?{_THOUGHT_NAMES}(?: [^<>\n]{{0,80}})?\|?[>\u25b7]"
    r"|<\|(?:begin|start)_(?:of_)?(?:thought|thinking)\|>|<\|(?P<end>end)_(?:of_)?(?:thought|thinking)\|>"
    rf"|\[(?P<square>/)?(?P<word>{_THOUGHT_NAMES})\]",
    re.IGNORECASE,
)
# "(thinking: they will go up)"
_ASIDE = re.compile(
    r"(?P<open>[\[({*])(?:thinking|thinks?|thoughts?|reasoning|internal"
    r"|inner monologue)\b ?[:;,][^\[\](){}*]{0,2000}[\])}*]",
    re.IGNORECASE,
)
# The channels of harmony: "<|channel|>final<|message|>7"
_FINAL_CHANNEL = re.compile(r"<\|channel\|>\s?final\b[^<\n]{0,40}<\|message\|>", re.IGNORECASE)
_OTHER_CHANNEL = re.compile(r"<\|channel\|>", re.IGNORECASE)

#: Longer answers are cut to `LONGEST` at once, and to `MAX_LENGTH` without thoughts: an answer stands at the beginning
#: or at the end.
LONGEST = 16_000
MAX_LENGTH = 2_800


def shorten(text: str, longest: int = MAX_LENGTH) -> str:
    """Keep the first quarter and the end of an answer that is longer than `longest` characters."""
    if len(text) <= longest:
        return text
    return text[: longest // 4] + "\n" + text[longest // 4 - longest :]


def remove_template_tokens(text: str) -> tuple[str, tuple[str, ...]]:
    """Remove template tokens and invisible characters.

    Returns:
        The text without them; and flags for what was removed.
    """
    flags: tuple[str, ...] = ()
    if not text.isascii():
        visible = _INVISIBLE.sub("", text)
        flags, text = (INVISIBLE,) if visible != text else (), visible
    original, previous, passes = text, None, 0
    while text != previous and ("<" in text or "[" in text or "\uff1c" in text or "]" in text):
        previous, passes = text, passes + 1
        text = _TEMPLATE.sub("", text)
        if passes == _PASSES and text != previous:
            text = _BRACKETS.sub("", text)
    return text, flags if text == original else (*flags, TEMPLATE_TOKENS)


def remove_thoughts(text: str) -> str:
    """Remove a model's thoughts from its answer.

    Thoughts that are opened and not closed extend to the end. Where only a closing tag is there, all before it is
    thought.
    """
    if "<|channel|>" in text.lower():
        finals = list(_FINAL_CHANNEL.finditer(text))
        text = text[finals[-1].end() :] if finals else text
        next_channel = _OTHER_CHANNEL.search(text)
        text = text[: next_channel.start()] if next_channel else text
    if not any(sign in text for sign in "<[({*\u25c1"):
        return text.strip()
    spoken: list[str] = []
    position, is_thought = 0, False
    # "[reasoning]" opens thoughts only where "[/reasoning]" may close them; "[THINK]" always does.
    has_square_end = "[/" in text
    for tag in _TAG.finditer(text):
        if tag["close"] or tag["end"] or tag["square"]:
            if not is_thought:
                spoken = []
            is_thought, position = False, tag.end()
        elif not is_thought and (tag["word"] is None or has_square_end or tag["word"].lower() == "think"):
            spoken.append(text[position : tag.start()])
            is_thought = True
    if not is_thought:
        spoken.append(text[position:])
    return _ASIDE.sub("\n", "".join(spoken)).strip()
