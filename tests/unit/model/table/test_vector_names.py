"""Names of deletion vectors, as the protocol encodes them."""

from __future__ import annotations

import pytest

from maintainer.model.table.log_names import vector_of_id, vector_path, z85_decode


def test_base_85_of_the_protocol() -> None:
    # The example of Delta's protocol.
    assert z85_decode("HelloWorld") == bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])
    with pytest.raises(ValueError, match="not base 85"):
        z85_decode("abc")
    with pytest.raises(ValueError, match="not base 85"):
        z85_decode("abc~e")
    with pytest.raises(ValueError, match="overflow"):
        z85_decode("#####")


def test_a_name_is_a_folder_and_a_uuid() -> None:
    # The example of Delta's protocol.
    assert vector_path("ab^-aqEH.-t@S}K{vb[*k^") == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert vector_path("^-aqEH.-t@S}K{vb[*k^") == "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert [vector_path(text) for text in ("short", "~" * 20, "../" + "0" * 20, "#" * 20)] == [None] * 4
    assert vector_of_id("u^-aqEH.-t@S}K{vb[*k^@1") == ("u", "^-aqEH.-t@S}K{vb[*k^")
    assert vector_of_id("pfile:/a/b@c.bin@14") == ("p", "file:/a/b@c.bin"), "an absolute path may be short"
    assert vector_of_id("iwi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L") is None
