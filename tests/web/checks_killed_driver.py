"""A server for the kill test: it takes a claim and dies in the middle of the debate.

python checks_killed_driver.py FOLDER SETTINGS QUESTIONS
"""

import os
import sys
from pathlib import Path

from check_parts import ask, ended, furnish, scripted
from climassay.web import AppState, ServerSettings
from climassay.workspace import Workspace
from web_parts import application_over


class Dying:
    """Ends the process, without a word to anybody, before a question is answered."""

    def __init__(self, questions):
        self.left = questions

    def __call__(self, prompt):
        """Count a question."""
        if self.left == 0:
            os.kill(os.getpid(), 9)
        self.left -= 1


def main() -> None:
    folder, settings, questions = sys.argv[1:]
    place = AppState(Workspace.open(folder), ServerSettings(debates=(Path(settings),)))
    furnish(place, scripted(Dying(int(questions))))
    with application_over(place) as client_of:
        ended(place, ask(client_of("annotator")))


if __name__ == "__main__":
    main()
