import pytest

from climassay.judging.quality import quality


@pytest.mark.parametrize(
    ("noun", "plural"),
    [("summary", "summaries"), ("essay", "essays"), ("abstract", "abstracts"), ("speech", "speeches")],
)
def test_nouns_have_their_plural(noun, plural):
    assert quality("text", "fluency", noun=noun).noun_plural == plural
