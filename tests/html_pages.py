"""A page as its reader has it: text, tables, lists, links."""

import itertools

from selectolax.lexbor import LexborHTMLParser


def words(element) -> str:
    """Text with single spaces."""
    return " ".join(element.text(separator=" ").split())


class Page:
    """What an answer says.

    Attributes:
        markup: As it was sent.
    """

    def __init__(self, markup):
        self.markup = markup
        self.root = LexborHTMLParser(markup)

    @property
    def text(self):
        """What can be read."""
        return words(self.root.root)

    def every(self, tag, **attributes):
        """Attributes of the tags of a name that have these."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [one.attributes for one in self.root.css(tag) if wanted.items() <= one.attributes.items()]

    def tags_with(self, attribute):
        """Attributes of the tags that have one, in order."""
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
