import numpy as np
import pytest

from llm_coop_envs.storage.arrays import pack_arrays, read_arrays
from llm_coop_envs.util.opening import DAMAGED

ARRAYS = {"a/b": np.arange(6.0).reshape(2, 3), "words": np.array("x"), "none": np.zeros((0, 4), dtype=np.int8)}
ABOUT = {"z": [1, None], "a": "\u00e9"}


def test_arrays_and_description_come_back_and_are_the_same_bytes_each_time(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(pack_arrays(ARRAYS, ABOUT))
    arrays, about = read_arrays(path)
    assert about == ABOUT
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array)
    assert pack_arrays(ARRAYS, dict(reversed(ABOUT.items()))) == path.read_bytes()


@pytest.mark.parametrize("content", [b"", b"PK nothing", pack_arrays(ARRAYS, ABOUT)[:300]])
def test_what_is_no_such_file_is_damaged(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DAMAGED):
        read_arrays(tmp_path / "a.npz")


def test_a_file_without_description_is_damaged_and_one_with_objects_is_not_opened(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.zeros(2))
    with pytest.raises(DAMAGED):
        read_arrays(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", about=np.frombuffer(b"{}", np.uint8), a=np.array([{}], dtype=object))
    with pytest.raises(DAMAGED, match="allow_pickle"):
        read_arrays(tmp_path / "b.npz")
