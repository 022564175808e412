"""Separate reasoning that a model writes into its answer from the answer.

Servers that support a model's format send reasoning in a separate field; others leave it in the text, between the
tags of the model's training. Tags are recognised by their form, ignoring case: a pair of tags named after thinking, in
angle or square brackets, bars or triangles (``<think>``, ``[THINK]``, ``<seed:think>``, ``<|thinking|>``,
``<|START_THINKING|>``, ``<|begin_of_thought|>``, ``◁think▷``), Gemma's ``<|channel>thought`` and the channels of the
harmony format. Tags that a text only mentions are kept: in quotes, in code, or in the middle of a sentence.

References:
    OpenAI (2025), harmony response format: messages with the channels ``analysis``, ``commentary`` and ``final``.
"""

import re
from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

_NAMES = (
    r"(?:\w+:)?(?:think(?:ing)?|thoughts?|thought_process|reason(?:ing)?|reasoning_scratchpad|reflection|scratchpad"
    r"|chain_of_thought|cot|analysis|inner_monologue)"
)
_PIPE_TAG_NAMES = r"(?:thinking|think|thoughts?|reasoning)"
_OPENERS = (
    rf"<({_NAMES})>",
    rf"\[({_NAMES})\]",
    rf"◁({_NAMES})▷",
    rf"<\|({_PIPE_TAG_NAMES})\|>",
    rf"<\|(?:start_|begin_of_)({_PIPE_TAG_NAMES})\|>",
    r"<\|channel>(thought)",
    r"<unused94>(thought)",
)
_CLOSERS = (
    r"</{}>",
    r"\[/{}\]",
    r"◁/{}▷",
    r"<(?:\|/|/\|){}\|>",
    r"<\|end_(?:of_)?{}\|>",
    r"<channel\|>",
    r"<unused95>",
)
_OPENER = re.compile("|".join(_OPENERS), re.IGNORECASE)
_CLOSER = re.compile("|".join(closer.format(_NAMES) for closer in _CLOSERS[:5]), re.IGNORECASE)
"""Pattern of the end tags of thoughts whose start tag is in the prompt."""
_ANSWER_DELIMITERS = re.compile(
    r"\A\s*<\|(?:start_response|begin_of_solution)\|>|<\|(?:end_response|end_of_solution)\|>\s*\Z", re.IGNORECASE
)
_HARMONY = re.compile(
    r"(?:<\|start\|>\w*)?<\|channel\|>\s*(\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>(.*?)"
    r"(?=<\|(?:end|return|call|start|channel)\|>|\Z)(?:<\|(?:end|return|call)\|>)?",
    re.DOTALL,
)
_BARE_HARMONY = re.compile(r"\A\s*analysis(?! )(.*?)assistantfinal(.*)\Z", re.DOTALL)
"""Pattern of the harmony format if the server drops its special tokens."""
_FINAL_CHANNEL_START = re.compile(r"<\|start\|>assistant<\|channel\|>\s*final\s*<\|message\|>")
_SUBJECT = re.compile(r" (?:is|are|was|were|tags?|tokens?|marks?|means|begins?|opens?|starts?)\b")
"""Pattern of words after a thinking tag. They show that the sentence is about the tag itself."""
_WORD_BEFORE, _WORD_AFTER = re.compile(r"\w \Z"), re.compile(r" [^\W\d_A-Z]{2}")
"""Patterns of the text before and after a thinking tag. If both match, the tag is part of a sentence."""
_QUOTES = "`\"'“”‘’«»„"
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


class SeparatedText(NamedTuple):
    """A model's text, separated into its answer and its thoughts."""

    answer: str
    thoughts: str


def separate_thoughts(text: str) -> SeparatedText:
    """Separate an answer from the thoughts that the model wrote into it.

    The following are thoughts:

    - tagged blocks at the beginning of the text; a block without an end tag reaches to the end of the text;
    - the text before an end tag whose start tag was in the prompt;
    - later blocks whose start tag begins a line, unless a colon introduces them as an example.

    In the harmony format, the answer is the channel ``final``, and all other channels are thoughts.

    Args:
        text: A message from a server, or the part of it that has arrived.

    Returns:
        The answer, stripped on the left if thoughts were removed, and the thoughts, which are empty if there are none.
    """
    if not _may_have_thoughts(text):
        return SeparatedText(text, "")
    harmony = _separate_channels(text)
    if harmony is not None:
        return harmony
    thoughts: list[str] = []
    remaining_text = text
    while (block := _split_leading_block(remaining_text)) is not None:
        thoughts.append(block.thoughts)
        remaining_text = block.answer
    if not thoughts and (end_tag := _find_unmatched_end_tag(remaining_text)) is not None:
        thoughts.append(remaining_text[: end_tag.start()])
        remaining_text = remaining_text[end_tag.end() :]
    remaining_text, later_thoughts = _remove_later_blocks(remaining_text)
    thoughts += later_thoughts
    if not thoughts:
        return SeparatedText(text, "")
    return SeparatedText(
        _ANSWER_DELIMITERS.sub("", remaining_text).lstrip(), "\n".join(thought.strip() for thought in thoughts)
    )


def _may_have_thoughts(text: str) -> bool:
    return any(character in text for character in ("<", "[", "◁")) or text.lstrip().startswith("analysis")


def _separate_channels(text: str) -> SeparatedText | None:
    """Separate the channels of a text in harmony format; return None for other formats."""
    if text.lstrip().startswith(("<|channel|>", "<|start|>")) and (messages := list(_HARMONY.finditer(text))):
        final_answer = "".join(message[2] for message in messages if message[1] == "final")
        return SeparatedText(
            final_answer.strip(), "\n".join(message[2] for message in messages if message[1] != "final")
        )
    # The template has put the beginning of the first message into the prompt.
    if (final_tag := _FINAL_CHANNEL_START.search(text)) is not None and not _is_mention(text, final_tag):
        answer = re.split(r"<\|(?:end|return)\|>", text[final_tag.end() :])[0]
        return SeparatedText(answer.strip(), re.sub(r"<\|end\|>\s*\Z", "", text[: final_tag.start()]))
    match = _BARE_HARMONY.match(text)
    return None if match is None else SeparatedText(match[2].strip(), match[1])


def _split_leading_block(text: str) -> SeparatedText | None:
    """Split off the block of thoughts at the beginning of a text; None if there is none.

    A block without an end tag is the whole text.
    """
    start = text.lstrip()
    opener = _OPENER.match(start)
    if opener is None or _SUBJECT.match(start, opener.end()):
        return None
    for end in _build_closer(opener).finditer(start, opener.end()):
        if not _is_mention(start, end):
            return SeparatedText(start[end.end() :], start[opener.end() : end.start()])
    return SeparatedText("", start[opener.end() :])


def _build_closer(opener: re.Match[str]) -> re.Pattern[str]:
    """Return the pattern of the end tag that belongs to a start tag."""
    form = next(index for index, name in enumerate(opener.groups()) if name is not None)
    return re.compile(_CLOSERS[form].format(re.escape(opener.groups()[form])), re.IGNORECASE)


def _find_unmatched_end_tag(text: str) -> re.Match[str] | None:
    """Return the end tag of thoughts whose start tag is in the prompt; None if there is none."""
    end_tag = next((tag for tag in _CLOSER.finditer(text) if not _is_mention(text, tag)), None)
    if end_tag is None or (_WORD_BEFORE.search(text[: end_tag.start()]) and _WORD_AFTER.match(text, end_tag.end())):
        return None
    has_start_tag = any(opener.start() < end_tag.start() for opener in _OPENER.finditer(text))
    return None if has_start_tag else end_tag


def _remove_later_blocks(text: str) -> tuple[str, list[str]]:
    """Remove the blocks of thoughts that follow the beginning of the answer, and return the text and the thoughts.

    Only blocks that begin at the start of a line are removed.
    """
    thoughts: list[str] = []
    position = 0
    while (opener := _OPENER.search(text, position)) is not None:
        position = opener.end()
        text_before = text[: opener.start()]
        begins_line = not text_before.rpartition("\n")[2].strip()
        if not begins_line or text_before.rstrip().endswith(":") or _is_mention(text, opener):
            continue
        end = _build_closer(opener).search(text, opener.end())
        if end is None or _is_mention(text, end) or text[end.end() :].partition("\n")[0].strip():
            continue
        thoughts.append(text[opener.end() : end.start()])
        text, position = text_before + text[end.end() :].lstrip("\n"), opener.start()
    return text, thoughts


def _is_mention(text: str, tag: re.Match[str]) -> bool:
    """Return whether a thinking tag is quoted or part of code."""
    start, end = tag.span()
    is_quoted = start > 0 and text[start - 1] in _QUOTES and text[end : end + 1] != "" and text[end] in _QUOTES
    fences, backticks = _find_code_delimiters(text)
    line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    n_before_line, n_before_tag = bisect_left(backticks, line_start), bisect_left(backticks, start)
    n_until_line_end = len(backticks) if line_end < 0 else bisect_left(backticks, line_end)
    is_in_code_span = (n_before_tag - n_before_line) % 2 == 1 and n_until_line_end > bisect_left(backticks, end)
    n_fences_before = bisect_left(fences, start)
    is_in_fence = n_fences_before % 2 == 1 and n_fences_before < len(fences)
    return is_quoted or is_in_code_span or is_in_fence


@lru_cache(maxsize=16)
def _find_code_delimiters(text: str) -> tuple[list[int], list[int]]:
    """Return the positions of code fences and of backticks, cached because a text may have thousands of tags."""
    fences = [fence.start() for fence in _FENCE.finditer(text)]
    return fences, [position for position, character in enumerate(text) if character == "`"]
