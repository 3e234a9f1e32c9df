"""Export messages in the formats of other programs, one module per format."""

from reservoir_cli.transfer.exporters.export_messages import FORMATS, export, export_to

__all__ = ["FORMATS", "export", "export_to"]
