"""How often the masker without a model picks the term that people masked, beside chance.

    python benchmarks/masking.py [QUESTIONS ...]

The cloze questions of the primer are always measured; further question files can be named.
"""

import sys

from climassay import primer
from climassay.generation.masking import StatisticsMasker
from climassay.generation.terms import candidates
from climassay.questions import GAP, read_questions
from climassay.reporting import Table, as_markdown
from climassay.statistics import proportion


def main() -> None:
    question_sets = [primer.gold_questions(), *map(read_questions, sys.argv[1:])]
    questions = [question for questions in question_sets for question in questions.of_kind("cloze")]
    labelled = [(question.question.replace(GAP, question.answer), question.answer) for question in questions]
    terms = [[word.term for word in candidates(statement)] for statement, _ in labelled]
    labelled, terms = zip(
        *((pair, own) for pair, own in zip(labelled, terms, strict=True) if pair[1] in own), strict=True
    )
    chosen = StatisticsMasker().choose([statement for statement, _ in labelled])
    rows = []
    for name, count in (("first", 1), ("among three", 3)):
        hits = [
            label in [term for term, _ in one.ranked[:count]] for one, (_, label) in zip(chosen, labelled, strict=True)
        ]
        share = proportion(sum(hits), len(hits))
        chance = sum(min(1, count / len(own)) for own in terms) / len(terms)
        interval = f"{share.interval.low:.2f} to {share.interval.high:.2f}"
        rows.append((name, str(len(hits)), f"{share.value:.3f}", interval, f"{chance:.3f}"))
    print(as_markdown(Table.of("Terms that people masked", ("", "n", "right", "95% interval", "chance"), rows)))


if __name__ == "__main__":
    main()
