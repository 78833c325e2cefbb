"""What is written into tables for others."""

import csv
import io

import pytest

from llm_coop_envs.util.quoting import table_cell


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("-86 to 170", "-86 to 170"),
        ("a\0b", "a\ufffdb"),
        ("=\0", "'=\ufffd"),
        (True, "TRUE"),
        (-1.5, -1.5),
    ],
)
def test_a_cell_is_one_on_every_python(value, cell):
    assert table_cell(value) == cell
    csv.writer(io.StringIO()).writerow([cell])
