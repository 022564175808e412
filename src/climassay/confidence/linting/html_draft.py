"""A web page as a draft: checked on its own source, so that lines and columns are those of the file."""

import html
import re

from climassay.confidence.linting.draft import DROPPED, BlockKind, Draft, DraftBlock, masked
from climassay.confidence.linting.plain_draft import joined

_HIDDEN = ("script", "style", "noscript", "template", "nav", "footer", "pre", "code", "svg", "math", "textarea", "head")
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\w[^>]*>|<(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9]*)(?P<rest>[^<>]*)>", re.DOTALL
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_KINDS: dict[str, BlockKind] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "heading"),
    **dict.fromkeys(("td", "th"), "row"),
    **dict.fromkeys(("li", "dd", "dt"), "item"),
    **dict.fromkeys(("caption", "figcaption"), "note"),
    "blockquote": "quotation",
    "p": "paragraph",
}
_OTHER_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "body", "br", "center", "details", "div", "dl", "fieldset", "figure", "form"),
        *("header", "hr", "html", "main", "ol", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul"),
    )
)
_ENDED_BY = {"ul": ("li", "p"), "ol": ("li", "p"), "dl": ("dt", "dd", "p"), "table": ("td", "th"), "tr": ("td", "th")}
_ITALIC = frozenset(("em", "i"))


def html_draft(text: str, name: str) -> Draft:
    """A web page: scripts, styles, navigation, code and the head of the page are passed over, entities are read."""
    reader = _Reader(text)
    for match in _TOKEN.finditer(text):
        reader.feed(match)
    reader.end_block(len(text))
    mask = _with_entities(masked(text, reader.dropped, reader.spaced))
    return Draft(name, text, mask, tuple(reader.blocks), italics=joined(reader.italics))


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.blocks: list[DraftBlock] = []
        self.dropped: list[tuple[int, int]] = []
        self.spaced: list[tuple[int, int]] = []
        self.italics: list[tuple[int, int]] = []
        self._kinds: list[tuple[str, BlockKind]] = []
        self._start = 0
        self._hidden: tuple[str, int] | None = None
        self._italic: int | None = None

    def feed(self, match: re.Match[str]) -> None:
        """Take one tag or comment."""
        name = (match["name"] or "").lower()
        closing = match["close"] == "/"
        if self._hidden is not None:
            if closing and name == self._hidden[0]:
                self.spaced.append((self._hidden[1], match.end()))
                self._hidden = None
            return
        if not name:
            self.spaced.append(match.span())
        elif name in _HIDDEN and not closing and not match["rest"].endswith("/"):
            self._hidden = (name, match.start())
        elif name in _KINDS or name in _OTHER_BLOCKS:
            self._block_tag(name, closing, match)
        else:
            self.dropped.append(match.span())
            if name in _ITALIC:
                self._italic_tag(closing, match)

    def _block_tag(self, name: str, closing: bool, match: re.Match[str]) -> None:
        self.end_block(match.start())
        self.spaced.append(match.span())
        self._start = match.end()
        if name not in _KINDS:
            # The end tags of items and cells may be left out.
            while closing and self._kinds and self._kinds[-1][0] in _ENDED_BY.get(name, ()):
                self._kinds.pop()
            return
        if not closing:
            # A paragraph inside an item or a quotation takes their kind.
            self._kinds.append((name, _KINDS[name]))
        else:
            for place in range(len(self._kinds) - 1, -1, -1):
                if self._kinds[place][0] == name:
                    del self._kinds[place:]
                    break

    def _italic_tag(self, closing: bool, match: re.Match[str]) -> None:
        if not closing:
            self._italic = match.end()
        elif self._italic is not None:
            self.italics.append((self._italic, match.start()))
            self._italic = None

    def end_block(self, end: int) -> None:
        """What stands between two tags of blocks is a block, where it has words."""
        hidden = self._hidden[1] if self._hidden else end
        if hidden < end:
            self.spaced.append((hidden, end))
        if self._text[self._start : hidden].strip():
            kinds = [kind for _, kind in self._kinds if kind != "paragraph"]
            self.blocks.append(DraftBlock(kinds[-1] if kinds else "paragraph", self._start, end))
        self._start = end


def _with_entities(mask: str) -> str:
    """Entities read, the rest of their places dropped; one that stands for several characters is left as it is."""

    def read(match: re.Match[str]) -> str:
        char = html.unescape(match.group())
        if char == DROPPED or len(char) != 1:
            return match.group()
        return char + DROPPED * (len(match.group()) - 1)

    return _ENTITY.sub(read, mask)
