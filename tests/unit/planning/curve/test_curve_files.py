"""The curve and its files, from the log alone."""

from __future__ import annotations

from maintainer.planning.curve.curve_files import files_of_pieces


def test_only_a_piece_with_far_too_many_rows_is_divided() -> None:
    assert files_of_pieces([(0, 10), (5, 20), (6, 9)], [0, 5], 20) == (1, 1)
    assert files_of_pieces([(0, 10), (5, 90), (6, 9)], [0, 5, 6], 20) == (1, 3, 1)
    assert files_of_pieces([(0, 41)], [0], 20) == (2,)
