"""Running the ``climassay`` command inside the test process."""

from climassay.cli.main import main


def run_command(monkeypatch, capsys, *arguments):
    """Exit code, stdout and stderr of ``climassay ARGUMENTS...``."""
    monkeypatch.setattr("sys.argv", ["climassay", *map(str, arguments)])
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    out = capsys.readouterr()
    return code, out.out, out.err
