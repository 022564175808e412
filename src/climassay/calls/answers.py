"""From documents to cited answers and checked claims."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.calls.opening import Place, collection_groups, collection_names, opened_model, opened_workspace
from climassay.errors import InputError
from climassay.models import DEFAULT_MODEL, Generator

if TYPE_CHECKING:
    from climassay.corpus import AddProgress, AddReport, Document, Skipped
    from climassay.factcheck import DebateSettings, Transcript
    from climassay.factcheck.checking import Tell
    from climassay.grounding import GroundedAnswer

PRIMER_BOOK = "primer:"
"""Begins the name of a bundled book where a file can be named."""


def add_documents(
    collection: str,
    files: str | Path | Iterable[str | Path],
    *,
    workspace: Place = None,
    encoder: str | None = None,
    passage_size: int | None = None,
    passage_overlap: int | None = None,
    on_progress: "Callable[[AddProgress], None] | None" = None,
) -> "AddReport":
    """Read files and add them to a collection, which is made where it is not there.

    What is there already changes nothing, and an interrupted call goes on where it stopped.

    Args:
        collection: Its name.
        files: PDF, HTML, Markdown, text, EPUB, tables, folders of them, or ``primer:BOOK`` for a bundled book.
        workspace: Where the collection lies.
        encoder: Of a new collection; by default the bundled one.
        passage_size: Characters of a passage of a new collection; 2000 by default.
        passage_overlap: Most characters that neighbouring passages share; 200 by default.
        on_progress: Told after every batch of passages.

    Returns:
        What was added and what was there; ``skipped`` names every file that could not be read, with the reason.

    Raises:
        InputError: None of the files can be read, or the collection has another encoder.
        ModelError: The encoder cannot be found.

    Example:
        >>> added = add_documents("heat", "primer:physical_climate", workspace=folder)
        >>> [book.title for book in added.added]
        ['Principles of Physical Climate']
    """
    from climassay.corpus import open_or_create, read_all

    listed = [files] if isinstance(files, (str, Path)) else list(files)
    skipped: list[Skipped] = []
    documents: list[Document] = []
    for result in read_all(map(_file, listed)):
        skipped += result.skipped
        documents += result.documents
    if not documents:
        reason = f": {skipped[0].reason}" if skipped else "."
        raise InputError(f"There is no document to add to {collection}{reason}")
    opened = open_or_create(
        opened_workspace(workspace),
        collection,
        encoder=encoder,
        passage_size=passage_size,
        passage_overlap=passage_overlap,
    )
    report = opened.add(documents, on_progress=on_progress)
    return replace(report, skipped=(*skipped, *report.skipped))


def ask(
    question: str,
    collections: str | Sequence[str],
    *,
    model: Generator | str = DEFAULT_MODEL,
    workspace: Place = None,
    passages: int = 4,
    sentences: int = 3,
) -> "GroundedAnswer":
    """Answer a question from collections, with citations of passages that exist, or say that they do not hold it.

    Args:
        question: In plain language.
        collections: Names of collections.
        model: Who writes.
        workspace: Where collections and records lie.
        passages: Put before the model.
        sentences: At most so many are asked for.

    Raises:
        InputError: The question is empty, or there is no such collection.
        ModelError: The model cannot be loaded.

    Example:
        >>> answer = ask("How should I boil an egg?", "heat", workspace=folder)
        >>> answer.enough_information
        False
        >>> print(answer.text)
        Not enough information.
    """
    from climassay.grounding import answer_data, answer_question, open_collections
    from climassay.records import RecordedModel, Records

    place = opened_workspace(workspace)
    group = open_collections(place, collection_names(collections))
    with opened_model(model, place) as loaded, Records(place.records_url) as store:
        config = {
            "question": question,
            "collections": collection_names(collections),
            "model": loaded.name,
            "passages": passages,
        }
        with store.run(command="ask", config=config) as run:
            recorded = RecordedModel(loaded, store, run)
            answer = answer_question(question, group, recorded, k=passages, sentences=sentences)
            run.save_results("answer", [answer_data(answer)])
    return answer


def check_claim(
    claim: str,
    collections: str | Sequence[str] = (),
    *,
    adversaries: Sequence[str] = (),
    plain: bool = False,
    settings: "DebateSettings | None" = None,
    model: Generator | str = DEFAULT_MODEL,
    workspace: Place = None,
    force: bool = False,
    tell: "Tell | None" = None,
) -> "Transcript":
    """Check a claim by a debate: an advocate for each collection, and a mediator who gives the verdict.

    Args:
        claim: One statement.
        collections: An advocate each; ``A+B`` is one advocate with two of them, ``A=0.5`` one of weight 0.5.
        adversaries: Collections of advocates who argue their collection's own stance.
        plain: Whether the model itself takes part, without passages.
        settings: Rules of the debate; its advocates and its model are those of the other arguments where these name
            any.
        model: Who speaks for everybody.
        workspace: Where collections and records lie.
        force: Debate a claim, too, that looks not checkable or not about climate.
        tell: Told of everything as it happens.

    Returns:
        Every word of the debate; ``transcript.verdict`` has the label, its explanation and its citations.

    Raises:
        InputError: The claim is empty, nobody debates, or there is no such collection.
        ModelError: The model cannot be loaded.

    Example:
        >>> transcript = check_claim("Carbon dioxide absorbs infrared radiation.", "heat", workspace=folder)
        >>> transcript.verdict.outcome
        'verdict'
    """
    from climassay.factcheck import Company, DebateSettings, advocates_from_names, make_claim, open_checker
    from climassay.factcheck.checking import collections_of, head_dtype
    from climassay.records import Records

    place, base = opened_workspace(workspace), settings or DebateSettings()
    named = advocates_from_names(collection_names(collections), plain=plain, adversaries=adversaries)
    made = make_claim(claim)
    rules = replace(base, advocates=named or base.advocates)
    groups = collection_groups(place, collections_of(rules))
    with opened_model(model, place, dtype=head_dtype(base)) as loaded, Records(place.records_url) as store:
        # One model speaks for everybody, whatever the settings name.
        rules = replace(
            rules,
            model=loaded.name,
            mediator=replace(rules.mediator, model=""),
            advocates=tuple(replace(advocate, model="") for advocate in rules.advocates),
        )
        company = Company({loaded.name: loaded}, groups)
        with open_checker(rules, company, store, config={"claim": made.text}) as checker:
            [transcript] = checker.check([made], force=force, tell=tell or (lambda _claim, _event: None))
            checker.keep([transcript])
    return transcript


def _file(name: str | Path) -> Path:
    if not str(name).startswith(PRIMER_BOOK):
        return Path(name).expanduser()
    from climassay.primer import book_path

    return book_path(str(name).removeprefix(PRIMER_BOOK))
