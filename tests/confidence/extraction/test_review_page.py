"""The page that statements are reviewed on."""

from climassay.confidence.extraction import ExtractOptions, extract
from climassay.confidence.extraction.review import review_page
from climassay.corpus import Block, Document


def found(**options):
    text = "Ice <b>melts</b> & cracks. Seas will rise (high confidence), and ice will go (low confidence). Rain falls."
    blocks = (Block(text, 7, headings=("A", "B")), Block("Seas will rise (high confidence).", 8, headings=("C",)))
    return extract([Document("d", "AR5 WG2", "r.pdf", blocks)], ExtractOptions(acronyms="never", **options))


def test_every_statement_with_its_level_page_and_the_words_around_it():
    page = review_page(found())
    assert page.count('class="statement"') == 3
    for words in ("page 7", "page 8", "Seas will rise, and ice will go.", "level 1 of 2", "Rain falls.", "A &gt; B"):
        assert words in page
    assert "Ice &lt;b&gt;melts&lt;/b&gt; &amp; cracks." in page
    assert "<b>melts" not in page
    assert "<mark>low confidence</mark>" in page
    assert "://" not in page
