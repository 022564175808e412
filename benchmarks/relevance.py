"""Relevance: which cosine tells a question that a collection can answer from one that it cannot.

For every question the cosine of its nearest passage is taken: the primer's questions in the book they are about and in
the other books, and questions on cooking, sport, history and the like in every book. A threshold keeps a question when
its nearest passage reaches it. With ``benchmarks/search.py`` run before, its 12,500 passages are asked as well.

    python benchmarks/relevance.py [--json]
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from climassay.corpus.collection import Collection
from climassay.corpus.gold_texts import read_gold_questions
from climassay.corpus.readers.file_types import read
from climassay.errors import InputError
from climassay.models.encoders import load_encoder
from climassay.primer import CONTRARIAN_BOOKS, book_names, book_path, question_paths
from climassay.workspace import cache_folder

THRESHOLDS = (0.25, 0.30, 0.35, 0.40, 0.45, 0.50)
OFF_TOPIC = (
    "How long should I boil an egg so that the yolk stays soft?",
    "What is the best flour for pizza dough?",
    "How do I keep a risotto creamy without adding cream?",
    "Which knife should I use to fillet a fish?",
    "How much salt goes into bread dough per kilogram of flour?",
    "Why does my cake sink in the middle after baking?",
    "How do you temper chocolate at home?",
    "What can replace eggs in a pancake recipe?",
    "Who won the football world cup in 1998?",
    "What is the offside rule in football?",
    "How many players are on a basketball team?",
    "Which club has won the most Champions League titles?",
    "How is a tennis tie-break scored?",
    "Who holds the record for most goals in a season?",
    "When should a coach use a zone defence?",
    "How do I change the oil of a motorcycle?",
    "How do I reset the password of my e-mail account?",
    "What is the difference between a list and a tuple in Python?",
    "How do I write a for loop in JavaScript?",
    "Which tyres are quietest on a family car?",
    "How can I negotiate a higher salary?",
    "What documents do I need to apply for a passport?",
    "How is compound interest on a savings account calculated?",
    "Who painted the ceiling of the Sistine Chapel?",
    "Which instruments play in a string quartet?",
    "Who wrote the novel Anna Karenina?",
    "How do I tune a guitar by ear?",
    "What happened at the Congress of Vienna?",
    "When was the printing press invented?",
    "Which treaty ended the Thirty Years' War?",
    "How should I prepare for a job interview?",
    "What is a good exercise for lower back pain?",
    "How many hours of sleep does a teenager need?",
    "Which vaccine is given against measles?",
    "What are the symptoms of appendicitis?",
    "How do I train a puppy to sit?",
    "How often should I feed a goldfish?",
    "Which chess opening is good for beginners?",
    "How does castling work in chess?",
    "What is the plot of Hamlet?",
    "How do I fold a paper crane?",
    "What size of screw do I need for a shelf?",
    "How do I remove a red wine stain from a carpet?",
    "Which film won the Oscar for best picture in 2020?",
    "How do I knit a scarf with two colours?",
    "What is the capital of Mongolia?",
    "How is a mortgage different from a lease?",
    "What are the rules of contract bridge?",
    "How do I prove that the square root of two is irrational?",
    "What is the derivative of the logarithm?",
    "How do noble gases differ from halogens?",
    "How does a refrigerator compressor work?",
    "How does an enzyme lower the activation energy?",
    "What is the structure of DNA?",
    "How does a nuclear power plant control its reactor?",
    "Which planets of the solar system have rings?",
    "How far away is the nearest star?",
    "How does a laser printer work?",
    "What is the speed of sound in steel?",
    "How do bees find their way back to the hive?",
)


@dataclass(frozen=True)
class Group:
    """Questions of one kind and the cosines of their nearest passages."""

    name: str
    cosines: tuple[float, ...]

    def kept(self, threshold: float) -> float:
        """Share of the questions that a threshold keeps."""
        return float(np.mean(np.array(self.cosines) >= threshold))


def nearest(collection: Collection, questions: Sequence[str]) -> tuple[float, ...]:
    return tuple(hits[0].cosine or 0.0 for hits in collection.search_many(questions, k=1, mode="dense"))


def measure(folder: Path) -> list[Group]:
    encoder = load_encoder()
    books = {}
    for name in book_names():
        books[name] = Collection.create(folder, name, encoder)
        books[name].add(read(book_path(name)).documents)
    asked = {path.stem: [question.question for question in read_gold_questions(path)[0]] for path in question_paths()}
    others = [(book, name) for book in asked for name in books if name not in (book, *CONTRARIAN_BOOKS)]
    groups = [
        Group("climate, right book", sum((nearest(books[book], asked[book]) for book in asked), ())),
        Group("climate, other book", sum((nearest(books[name], asked[book]) for book, name in others), ())),
        Group("off topic, books", sum((nearest(books[book], OFF_TOPIC) for book in asked), ())),
    ]
    try:
        large = Collection.open(cache_folder() / "benchmarks", "search-benchmark", encoder)
        groups.append(Group(f"off topic, {len(large):,}", nearest(large, OFF_TOPIC)))
    except InputError:
        pass  # benchmarks/search.py has not made it here
    return groups


def main() -> None:
    parser = argparse.ArgumentParser(description="Relevance: which cosine tells that nothing relevant was found.")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        groups = measure(Path(folder))
    if arguments.json:
        print(json.dumps([asdict(group) for group in groups], indent=2))
        return
    print(f"{'share kept at a cosine of':26} {'n':>4} " + " ".join(f"{threshold:6.2f}" for threshold in THRESHOLDS))
    for group in groups:
        shares = " ".join(f"{group.kept(threshold):6.3f}" for threshold in THRESHOLDS)
        print(f"{group.name:26} {len(group.cosines):4} {shares}")


if __name__ == "__main__":
    main()
