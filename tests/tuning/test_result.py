"""Adapters of other versions."""

import pytest

from climassay.errors import InputError
from climassay.tuning.result import FORMAT, RESULT_FILE, read_result


def test_an_adapter_of_a_newer_climassay_is_refused(tmp_path):
    (tmp_path / RESULT_FILE).write_text(f'{{"format": {FORMAT + 1}}}')
    with pytest.raises(InputError, match=r"written by a newer climassay .*: update climassay\.$"):
        read_result(tmp_path)
