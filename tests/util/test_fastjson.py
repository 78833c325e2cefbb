import tracemalloc

import pytest

from llm_coop_envs.util import fastjson


@pytest.mark.skipif(fastjson.orjson is None, reason="orjson is not installed")
def test_what_was_written_takes_no_more_room_than_it_needs():
    tracemalloc.start()
    kept = [fastjson.dumps({"text": "x" * 2500, "number": number}) for number in range(100)]
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 2 * sum(map(len, kept))  # 32 kB each when orjson's own bytes were kept
