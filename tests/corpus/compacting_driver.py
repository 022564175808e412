"""Adds passages one by one to a collection and compacts it, for ever, until it is killed.

Arguments: folder of collections, number of the first passage. Each step is told before it begins.
"""

import sys
from itertools import count
from pathlib import Path

from climassay.corpus import Collection

sys.path.insert(0, str(Path(__file__).parent))
from random_passages import RandomEncoder, random_document


def main() -> None:
    folder, first = sys.argv[1:]
    collection = Collection.open(Path(folder), "c", RandomEncoder())
    for number in count(int(first)):
        print("add", number, flush=True)
        collection.add([random_document(number, 1, words=30)])
        print("compact", number, flush=True)
        collection.compact()


if __name__ == "__main__":
    main()
