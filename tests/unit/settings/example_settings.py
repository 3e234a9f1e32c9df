"""A settings file with every kind of table."""

from pathlib import Path

EVERY_TABLE = """\
# my settings
partition = "coding"   # where I am most of the time
model = "gpt-3.5-turbo"
token_multiplier = 1.1
recent_context_size = 11

[partitions.coding]
token_multiplier = 1.2 # finer

[models."gpt-3.5-turbo"]
token_multiplier = 1.3
recent_context_size = 13
reserve_tokens = 512
"""


def write_settings(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file
