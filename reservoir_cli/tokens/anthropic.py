"""Count the tokens of a finished request with Anthropic's endpoint."""

import os
from collections.abc import Mapping
from typing import Any

from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.tokens.estimates import ApproximateCounter


class AnthropicCounter:
    """A counter that asks Anthropic to count a finished request, and estimates single texts.

    It needs ``ANTHROPIC_API_KEY``; ``ANTHROPIC_BASE_URL`` changes the endpoint.

    :raises ModelUnavailableError: the network must not be used, or there is no key.
    """

    exact = False

    def __init__(self, model: str, *, offline: bool) -> None:
        self._approximate = ApproximateCounter()
        self._model = model
        self._key = os.environ.get("ANTHROPIC_API_KEY", "")
        self.name = f"anthropic:{model}"
        # Messages are stored with the approximate count.
        self.version = self._approximate.version
        if offline:
            raise ModelUnavailableError(
                f"the token counter {self.name} needs the network, and --offline is set",
                hint="use --offline with approximate, tiktoken:ENCODING or huggingface:PATH",
            )
        if not self._key:
            raise ModelUnavailableError(
                f"the token counter {self.name} needs a key", hint="set ANTHROPIC_API_KEY"
            )

    def count(self, text: str) -> int:
        """Estimate the tokens of a text."""
        return self._approximate.count(text)

    def count_request(self, body: Mapping[str, Any]) -> int:
        """Ask the endpoint for the tokens of a whole request to the counter's model.

        :raises ModelUnavailableError: the endpoint does not answer, or rejects the request.
        """
        import json
        import urllib.error
        from http.client import HTTPException

        counted = {key: value for key, value in body.items() if key != "max_tokens"}
        data = json.dumps({**counted, "model": self._model}).encode()
        try:
            return int(json.loads(self._send(data))["input_tokens"])
        except (OSError, HTTPException, ValueError, OverflowError, KeyError, TypeError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            reason = getattr(error, "code", None) or type(error).__name__
            raise ModelUnavailableError(
                f"the token counter {self.name} got no count ({reason})",
                hint="check the key, the model and the network, or set another token_counter",
            ) from None

    def _send(self, data: bytes) -> bytes:
        import urllib.request

        base = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com").rstrip("/")
        request = urllib.request.Request(
            f"{base}/v1/messages/count_tokens",
            data=data,
            headers={
                "content-type": "application/json",
                "x-api-key": self._key,
                "anthropic-version": "2023-06-01",
            },
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            content: bytes = answer.read()
            return content
