"""A page as its reader has it: text, tables, lists, links."""

import itertools
import re
from html.parser import HTMLParser

from selectolax.lexbor import LexborHTMLParser


def words(element) -> str:
    """Text with single spaces."""
    return " ".join(element.text(separator=" ").split())


class Page:
    """What an answer says."""

    def __init__(self, markup):
        self.markup = markup
        self.root = LexborHTMLParser(markup.replace("<wbr>", ""))

    @property
    def text(self):
        """What can be read."""
        return words(self.root.root)

    def every(self, tag, **attributes):
        """Attributes of the tags of a name that have these."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [one.attributes for one in self.root.css(tag) if wanted.items() <= one.attributes.items()]

    def tags_with(self, attribute):
        return [one.attributes for one in self.root.css(f"[{attribute}]")]

    @property
    def links(self):
        """Addresses of all links, in order."""
        return [link.attributes.get("href") for link in self.root.css("a")]

    @property
    def link_texts(self):
        """Words of all links, in order."""
        return [words(link) for link in self.root.css("a")]

    def rows(self, label):
        """Cells of the table in the group of that name; empty where there is none."""
        groups = [one for one in self.root.css("[role=group]") if one.attributes.get("aria-label") == label]
        return self._cells(groups[0]) if groups else []

    def rows_below(self, title):
        """Cells of the table with that caption."""
        [caption] = [one for one in self.root.css("caption") if words(one) == title]
        return self._cells(caption.parent)

    def entries(self, css):
        """Texts of the entries of a list."""
        return [words(one) for one in self.root.css(f"ol.{css} > li")]

    def headings_in_order(self):
        """Whether there is one first heading, and no level is left out on the way down."""
        levels = [int(one.tag[1]) for one in self.root.css("h1, h2, h3, h4")]
        return levels.count(1) == 1 and all(b <= a + 1 for a, b in itertools.pairwise(levels))

    @property
    def style_attributes(self):
        """What the policy of the application would not let through."""
        return [one.tag for one in self.root.css("[style], style")]

    @property
    def scripts(self):
        """What stands in the page's own scripts."""
        return [one.text() for one in self.root.css("script:not([src])")]

    @property
    def inline_scripts(self):
        """Likewise: scripts in the page and in attributes."""
        written = self.scripts
        handlers = [name for one in self.root.css("*") for name in one.attributes if name.startswith("on")]
        return written + handlers

    @staticmethod
    def _cells(place):
        return [[words(cell) for cell in row.css("td, th")] for row in place.css("tbody > tr")]


class Elements(HTMLParser):
    """Every start tag with its attributes and the text right behind it; complains where one is not closed in order."""

    _VOID = frozenset({"wbr", "meta", "br", "link", "img", "input", "circle", "line", "path"})

    def __init__(self, page):
        super().__init__()
        self.page, self.found, self._open, self._texts = page, [], [], []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_startendtag(self, tag, attrs):
        """Note an element without content."""
        self.found.append([tag, dict(attrs), ""])

    def handle_starttag(self, tag, attrs):
        """Note an element, and that it is open."""
        self.handle_startendtag(tag, attrs)
        if tag not in self._VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        """Close an element."""
        if tag not in self._VOID:
            assert self._open.pop() == tag

    def handle_data(self, data):
        """Note a text."""
        if self.found and not self.found[-1][2]:
            self.found[-1][2] = data
        if self._open and self._open[-1] not in ("style", "title"):
            self._texts.append(data)

    def of(self, tag, css="", **wanted):
        """Attributes of the elements with that tag, a word in their class, and these texts in their attributes."""
        found = [attrs for name, attrs, _ in self.found if name == tag and css in ["", *_classes(attrs)]]
        return [attrs for attrs in found if all(text in (attrs.get(name) or "") for name, text in wanted.items())]

    def texts(self, tag, css=""):
        """The text right behind each start tag of a kind."""
        return [text for name, attrs, text in self.found if name == tag and css in ["", *_classes(attrs)]]

    @property
    def tags(self):
        return [tag for tag, _, _ in self.found]

    @property
    def ids(self):
        return [attrs["id"] for _, attrs, _ in self.found if "id" in attrs]

    @property
    def links(self):
        """Addresses of all links, in order."""
        return [attrs["href"] for tag, attrs, _ in self.found if tag == "a"]

    @property
    def words(self):
        """What can be read, with single spaces."""
        return " ".join("".join(self._texts).split())

    def check(self):
        """Ids are unique, links within the page lead somewhere, and no level of heading is left out."""
        assert len(self.ids) == len(set(self.ids))
        assert {link[1:] for link in self.links if link.startswith("#")} <= set(self.ids)
        levels = [int(tag[1]) for tag in self.tags if re.fullmatch(r"h\d", tag)]
        assert levels.count(1) == 1 == levels[0]
        assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def _classes(attrs):
    return (attrs.get("class") or "").split()
