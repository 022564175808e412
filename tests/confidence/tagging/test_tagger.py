import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.statement import Statement
from climassay.confidence.tagging import (
    LEVELS,
    ConstantTagger,
    Lesson,
    PartSpec,
    Readers,
    TaggerSpec,
    TaggingItem,
    best_of,
    compare,
    finish,
    load_tagger,
    save_tagger,
)
from climassay.confidence.tagging.reading import Vocabulary, ngrams
from climassay.confidence.tagging.tagger import BUNDLED_TAGGER
from climassay.errors import InputError
from confidence.tagging.planted import encoder, planted

WORDS = TaggerSpec("words", (PartSpec(("words",)),), least=2)
VECTORS = TaggerSpec("vectors", (PartSpec(("vectors",)),))
ALL = TaggerSpec(
    "all", (PartSpec(("words",)), PartSpec(("vectors", "context vectors"), "ordinal"), PartSpec(("context words",)))
)


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    return Lesson(planted(), Readers(encoder()))


@pytest.fixture(scope="module")
def tried(lesson):
    # A planted statement differs from others by its sign, which the encoder does not see: twins by words.
    lesson.twins = lambda: type(Lesson(lesson.items, Readers()).twins()).of_words(lesson.items)
    return compare((TaggerSpec("constant", ()), VECTORS, WORDS), lesson, count=4, resamples=50)


@pytest.fixture(scope="module")
def tagger(lesson, tried):
    return finish(best_of(tried), lesson, data="planted", data_sha256="0" * 64, licence="CC0")


def test_the_one_that_reads_the_signs_is_chosen(tried) -> None:
    constant, vectors, words = tried
    assert best_of(tried) is words
    assert words.natural.accuracy.value == 1.0
    assert vectors.balanced.accuracy.value < 0.45
    assert constant.balanced.accuracy.value == pytest.approx(0.25, abs=0.01)
    with pytest.raises(InputError, match="nothing to choose"):
        best_of([constant])


def test_random_labels_are_not_learned() -> None:
    noisy = Lesson(planted(noise=1.0), Readers())
    found = compare((WORDS,), noisy, count=4, resamples=20)[0]
    assert found.balanced.accuracy.value < 0.42


def test_tags_what_it_has_not_seen(tagger) -> None:
    texts = ["This unequivocally means that ice melts.", "There might perhaps be less snow."]
    assert tagger.tag(texts) == ["very high", "low"]
    found = tagger.probabilities(texts)
    assert found.shape == (2, 4)
    assert found.sum(axis=1) == pytest.approx(1)
    assert tagger.levels == LEVELS


@pytest.mark.parametrize("spec", [WORDS, ALL], ids=["words", "all sources"])
def test_a_file_gives_back_the_same_tagger(lesson, tried, tmp_path, spec) -> None:
    from dataclasses import replace

    made = finish(replace(tried[2], spec=spec), lesson, data="planted", data_sha256="0" * 64, licence="CC0")
    path = tmp_path / "t.safetensors"
    save_tagger(made, path)
    loaded = load_tagger(path)
    assert loaded.card == made.card
    items = [one.item for one in planted(12, seed=5)]
    again = loaded.with_readers(encoder()).probabilities(items)
    assert np.array_equal(again, made.probabilities(items))


def test_another_encoder_is_refused(lesson, tried) -> None:
    from dataclasses import replace

    made = finish(replace(tried[2], spec=ALL), lesson, data="planted", data_sha256="0" * 64, licence="CC0")
    other = encoder()
    other.fingerprint = "8" * 64
    with pytest.raises(InputError, match="another encoder"):
        made.with_readers(other)


def test_tags_in_the_text_or_context_are_not_read(tagger) -> None:
    plain = tagger.probabilities(["The record shows that ocean and carbon change."])
    tagged = tagger.probabilities(
        [
            ("The record shows that ocean and carbon change (low confidence).", "It was dry (very high confidence)."),
            "There is medium confidence that the record shows that ocean and carbon change (Smith et al., 2013).",
        ]
    )
    assert tagged[0] == pytest.approx(plain[0])
    assert tagged[1].argmax() == plain[0].argmax()


def test_a_context_is_parted_at_the_statement() -> None:
    item = TaggingItem.of(("Ice melts.", "It is warm (high confidence). Ice melts. Seas rise {3.2}."))
    assert item.before == ("It is warm.",)
    assert item.after == ("Seas rise.",)
    assert item.window(1) == "It is warm. Ice melts. Seas rise."
    assert TaggingItem.of(("Ice melts.", "It is warm.")).before == ("It is warm.",)
    statement = Statement("1", "Ice melts.", "high", "AR6 WG1", "d", "d", before=("It is warm.",), after=("A.", "B."))
    assert TaggingItem.of(statement).surroundings(1) == "It is warm. A."


def test_another_mix_moves_the_answer(tagger) -> None:
    unsure = ["Nothing here was ever seen."]
    plain = tagger.probabilities(unsure)[0]
    moved = tagger.for_mix((0.97, 0.01, 0.01, 0.01)).probabilities(unsure)[0]
    assert moved[0] > plain[0]
    assert tagger.for_mix((0.97, 0.01, 0.01, 0.01)).tag(unsure) == ["low"]
    with pytest.raises(InputError, match="needs 4 shares"):
        tagger.for_mix((1, 1))


def test_a_statement_without_words_is_refused(tagger) -> None:
    with pytest.raises(InputError, match="Statement 2 has no words"):
        tagger.probabilities(["Ice melts.", "12 (high confidence)"])
    assert tagger.tag([]) == []


def test_the_constant_gives_its_shares() -> None:
    constant = ConstantTagger(LEVELS, (0.1, 0.2, 0.6, 0.1))
    assert constant.tag(["a", "b"]) == ["high", "high"]
    assert constant.probabilities(["a"]).tolist() == [[0.1, 0.2, 0.6, 0.1]]


def test_damaged_files_are_told(tagger, tmp_path) -> None:
    from dataclasses import replace

    path = tmp_path / "t.safetensors"
    save_tagger(replace(tagger, levels=("high", "low", "medium", "very high")), path)
    with pytest.raises(InputError, match="damaged"):
        load_tagger(path)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="damaged"):
        load_tagger(path)
    with pytest.raises(InputError, match="There is no confidence tagger"):
        load_tagger(tmp_path / "none.safetensors")


def test_the_bundled_tagger_says_where_it_comes_from() -> None:
    assert BUNDLED_TAGGER.stat().st_size < 1_000_000
    card = load_tagger().card
    assert "CC BY 4.0" in card.licence
    figures = card.figures
    assert figures["n"] > 7000
    assert figures["balanced_accuracy_low"] > 0.4
    assert figures["mix_accuracy_low"] > 1 / 3
    json.dumps(figures)


def test_ngrams_leave_numbers_out() -> None:
    assert ngrams("Sea-level rose 3.2 mm", 2) == ["sea-level", "rose", "mm", "sea-level rose", "rose mm"]


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6))
def test_rows_of_words_have_length_one_or_none(texts) -> None:
    read = Vocabulary.learn(texts, least=1).read(texts).toarray()
    lengths = np.linalg.norm(read, axis=1)
    assert all(length == pytest.approx(1) or length == 0 for length in lengths)
    assert [length > 0 for length in lengths] == [bool(ngrams(text, 1)) for text in texts]
