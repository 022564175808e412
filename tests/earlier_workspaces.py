"""Workspaces as landed versions wrote them, in ``tests/data/workspaces`` as ``vN.tar.gz`` (N: version of the tables).

Whoever raises ``SCHEMA_VERSION`` keeps one of the version before, made in a checkout of it::

    python tests/earlier_workspaces.py tests/data/workspaces/v3.tar.gz

``unpacked(version, folder)`` is such a workspace, ``into_postgres(folder, url)`` moves its tables to PostgreSQL.
"""

import sys
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

FOLDER = Path(__file__).with_name("data") / "workspaces"
VERSIONS = sorted(int(file.name.removeprefix("v").split(".")[0]) for file in FOLDER.glob("v*.tar.gz"))
QUESTIONS = ("Is it warm?", "Is it cold?", "fail")
CLAIM = "It warms."
PASSWORD = "correct horse battery"
PASSAGE = "Glaciers lose mass where they melt faster than snow falls."
TRAINED = "topics.safetensors"
"""Classifier of texts, from version 3 on."""


def unpacked(version: int, folder: Path) -> Path:
    with tarfile.open(FOLDER / f"v{version}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def into_postgres(folder: Path, url: str) -> str:
    """Copy the tables of a workspace, as they are, into an empty PostgreSQL database."""
    import sqlalchemy as sa

    source = sa.create_engine(f"sqlite:///{folder / 'records.sqlite'}")
    target = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    metadata = sa.MetaData()
    sa.event.listen(
        metadata, "column_reflect", lambda _inspector, _table, column: column.update(type=column["type"].as_generic())
    )
    metadata.reflect(source)
    for table in metadata.tables.values():
        for key in table.primary_key.columns:
            key.autoincrement = isinstance(key.type, sa.Integer) and len(table.primary_key.columns) == 1
    schema = target.execution_options(schema_translate_map={None: "climassay"})
    with source.connect() as read, schema.begin() as write:
        write.execute(sa.schema.CreateSchema("climassay"))
        metadata.create_all(write)
        for table in metadata.sorted_tables:
            rows = [dict(row) for row in read.execute(sa.select(table)).mappings()]
            if rows:
                write.execute(table.insert(), rows)
            for key in table.primary_key.columns:
                if key.autoincrement is True:
                    place = f"pg_get_serial_sequence('climassay.{table.name}', '{key.name}')"
                    most = f'(SELECT coalesce(max("{key.name}"), 0) + 1 FROM climassay.{table.name})'
                    write.exec_driver_sql(f"SELECT setval({place}, {most}, false)")
    source.dispose()
    target.dispose()
    return url


def fill(folder: Path) -> None:
    """Everything that a workspace can hold, a little of each."""
    import numpy as np

    from annotated_drafts import DATASET, VALID, WRONG, begin, plain
    from climassay.corpus import Collection
    from climassay.corpus.documents import Block, Document
    from climassay.factcheck import DebateSettings, advocates_from_names, make_claim
    from climassay.factcheck.check_store import CheckStore
    from climassay.generation.annotation import AnnotationSettings, AnnotationStore
    from climassay.learning.text_classifier import WORDS, TrainingTexts, fit_classifier
    from climassay.records import RecordedModel, Records
    from climassay.web.accounts import AccountStore
    from climassay.web.jobs import Jobs
    from climassay.workspace import Workspace
    from debate_parts import WordEncoder
    from factcheck_transcripts import full_transcript
    from writing_process import Shout, ask

    workspace = Workspace.open(folder)
    with Records(workspace.records_url) as store:
        for command in ("first", "second"):
            with store.run(command, {"file": "questions.csv"}, {"order": 0}) as run:
                RecordedModel(Shout(), store, run).generate(ask(*QUESTIONS))
                run.save_results("scores", [{"accuracy": 0.5, "n": 2}])
        begin(store, plain(3))
        labels = AnnotationStore(store)
        labels.configure(DATASET, AnnotationSettings(overlap=2))
        labels.label(DATASET, "q0000", "ann", key="a0", **VALID)
        labels.label(DATASET, "q0000", "bob", key="b0", **VALID)
        labels.label(DATASET, "q0001", "ann", key="a1", **WRONG)
        labels.next(DATASET, "ann")
        labels.skip(DATASET, "q0002", "ann")
        accounts = AccountStore(store.database)
        accounts.add("ann", "admin", "Ann")
        accounts.add("bob", "annotator")
        accounts.set_password("ann", PASSWORD)
        accounts.make_token("ann", "script")
        checks = CheckStore(store)
        settings = DebateSettings(advocates_from_names(["ice"]))
        done = checks.begin(make_claim(CLAIM), settings, set_up="one", by="ann")
        checks.finish(done, full_transcript(), run="r1")
        checks.review(done, "bob", "agree", "Well put.")
        waiting = checks.begin(make_claim("It cools."), DebateSettings(), set_up="one")
        jobs = Jobs(store.database)
        jobs.register("check", lambda *_: None, "models")
        checks.give_to(waiting, jobs.submit("check", "Check: It cools.", {"check": waiting}))
        jobs._take("models")  # which leaves it running, as a kill does
    collection = Collection.create(workspace, "ice", WordEncoder())
    collection.add([Document("ice", "The ice", "ice.txt", (Block(PASSAGE),))])
    texts = [f"{words} {number}" for number in range(4) for words in ("ice melts", "air warms")]
    training = TrainingTexts(texts, ["ice", "air"] * 4, ["ice", "air"], groups=range(8))
    fit_classifier(replace(WORDS, least=1), training, np.arange(8)).save(folder / TRAINED)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        fill(Path(place))
        with tarfile.open(sys.argv[1], "w:gz") as archive:
            for name in sorted(one.name for one in Path(place).iterdir()):
                archive.add(Path(place) / name, name)


if __name__ == "__main__":
    main()
