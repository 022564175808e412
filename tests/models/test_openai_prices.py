"""Prices: from options, from a table in the workspace, or unknown."""

import pytest

from climassay.errors import InputError
from climassay.models.servers import Price, find_price, price_from_options


def test_prices_from_options():
    assert price_from_options(None, None) is None
    assert price_from_options(0.0, 2.0) == Price(0.0, 2.0)
    with pytest.raises(InputError, match="needs both"):
        price_from_options(1.0, None)


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf")])
def test_a_price_is_a_number_of_dollars(price):
    with pytest.raises(InputError, match="US dollars per million"):
        Price(1.0, price)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prices.toml", "not toml ["),
        ("prices.json", "[]"),
        ("prices.json", '{"m": {"prompt": 1}}'),
        ("prices.json", '{"m": {"prompt": "cheap", "completion": 1}}'),
        ("prices.json", '{"m": 3}'),
    ],
)
def test_a_table_that_cannot_be_read_is_one_sentence(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match="cannot be read"):
        find_price("m", tmp_path)
