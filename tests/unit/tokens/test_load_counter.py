"""Loading a counter by its name."""

from __future__ import annotations

import subprocess
import sys

import pytest
from each import each

from reservoir_cli.errors import UsageError
from reservoir_cli.tokens import load_counter


@pytest.mark.parametrize("name", ["approximate", "ratio"])
def test_a_counter_has_the_requested_name(name):
    counter = load_counter(name)
    assert counter.name == name
    assert counter.version
    assert not counter.exact


@each(
    "name",
    [
        "",
        "Approximate",
        "approximate:",
        "approximate:x",
        "ratio:4",
        "tiktoken",
        "tiktoken:",
        "tiktoken:o201k",
        "huggingface",
        "huggingface:",
        ":",
        "openai:gpt-4o",
    ],
)
def test_an_unknown_counter_is_a_usage_error_that_lists_the_known(name):
    with pytest.raises(UsageError) as caught:
        load_counter(name)
    assert caught.value.exit_code == 2
    assert "one of" in str(caught.value.hint)


def test_approximate_counting_imports_no_library():
    program = (
        "import sys; from reservoir_cli.tokens import load_counter; "
        "load_counter('approximate').count('a'); load_counter('ratio').count('a'); "
        "print(sorted({'numpy', 'tiktoken', 'tokenizers', 'torch'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert result.stdout.strip() == b"[]"
