"""Counts of finished requests, by the provider's endpoint."""

import os
from collections.abc import Mapping
from typing import Any

from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.tokens.approximate import ApproximateCounter


class AnthropicCounter:
    """Counts a finished request by the provider's endpoint; single texts are approximated.

    The request, with every message in it, leaves the machine: that is what this counter is
    chosen for. It needs ``ANTHROPIC_API_KEY``; ``ANTHROPIC_BASE_URL`` moves the endpoint.

    :raises ModelUnavailableError: offline, or without a key.
    """

    exact = False

    def __init__(self, model: str, *, offline: bool) -> None:
        self._approximate = ApproximateCounter()
        self._model = model
        self._key = os.environ.get("ANTHROPIC_API_KEY", "")
        self.name = f"anthropic:{model}"
        # What is stored with a message is the approximate count.
        self.version = self._approximate.version
        if offline:
            raise ModelUnavailableError(
                f"the token counter {self.name} asks the network, and --offline is given",
                hint="use --offline with approximate, tiktoken:ENCODING or huggingface:PATH",
            )
        if not self._key:
            raise ModelUnavailableError(
                f"the token counter {self.name} needs a key", hint="set ANTHROPIC_API_KEY"
            )

    def count(self, text: str) -> int:
        """Approximate the tokens of a text."""
        return self._approximate.count(text)

    def count_request(self, body: Mapping[str, Any]) -> int:
        """Ask for the tokens of a whole request.

        :param body: a request to Anthropic's messages; ``model`` is set to the counter's.
        :raises ModelUnavailableError: the provider does not answer, or refuses.
        """
        import json
        import urllib.error
        import urllib.request

        base = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com").rstrip("/")
        asked = {key: value for key, value in body.items() if key != "max_tokens"}
        request = urllib.request.Request(
            f"{base}/v1/messages/count_tokens",
            data=json.dumps({**asked, "model": self._model}).encode(),
            headers={
                "content-type": "application/json",
                "x-api-key": self._key,
                "anthropic-version": "2023-06-01",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return int(json.load(answer)["input_tokens"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            reason = getattr(error, "code", None) or type(error).__name__
            raise ModelUnavailableError(
                f"the token counter {self.name} got no count ({reason})",
                hint="check the key, the model and the network, or set another token_counter",
            ) from None
