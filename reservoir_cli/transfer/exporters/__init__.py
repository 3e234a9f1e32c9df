"""Export messages as rows of our own, or in the formats of other programs."""

from reservoir_cli.transfer.exporters.export_messages import FORMATS, export, export_to

__all__ = ["FORMATS", "export", "export_to"]
