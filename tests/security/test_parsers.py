"""No bytes break a parser: noise, and samples of each format mixed with pieces of others.

The long form is ``python tests/security/fuzz.py``, guided by coverage where atheris is installed.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsers import PARSERS
from seeds import damaged_zip, spliced

short = settings(max_examples=30, derandomize=True, database=None, deadline=None)


@pytest.mark.parametrize("name", PARSERS)
@short
@given(noise=st.binary(max_size=400), random=st.randoms(use_true_random=False))
def test_no_bytes_break_a_parser(name, noise, random):
    PARSERS[name](noise)
    PARSERS[name](spliced(random))


@short
@given(random=st.randoms(use_true_random=False))
def test_no_damage_of_a_zip_breaks_its_reading(random):
    PARSERS["file"](damaged_zip(random))
