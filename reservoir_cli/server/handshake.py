"""Prove that a program and a server know the same token, which itself never travels.

A server that was killed leaves its entry in the file of running servers, and any program may listen
at its port since. So the server proves first that it knows the token: it signs a nonce of the
program, with its own address and process, so that no other server's proof can be passed on. Then
the program makes the code that opens the page, and the server checks the code's signature.
"""

import json
import re
from dataclasses import dataclass

NONCE_BYTES = 16  # random bytes of a nonce
_NONCE = re.compile(r"[\w-]{16,64}", re.ASCII)
#: A code, and the answer of a server: the server's clock when it proved itself, and a signature.
_CODE = re.compile(r"(\d{1,15})\.([\w-]{16,64})\.([0-9a-f]{64})", re.ASCII)
_PROOF = re.compile(r"(\d{1,15}) ([0-9a-f]{64})", re.ASCII)
MAX_PROOF = 80  # the largest answer with a proof, in bytes


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """A server's process, and the token that it shares with programs of its user.

    :param started: as by ``process_start_time``.
    """

    token: str
    origin: str
    pid: int
    started: str

    def prove(self, nonce: str, second: int) -> str | None:
        """Return a server's proof that it knows the token; ``None`` if the nonce is invalid."""
        if not _NONCE.fullmatch(nonce):
            return None
        return f"{second} {self._sign('server', nonce, second)}"

    def check_proof(self, nonce: str, proof: str) -> int | None:
        """Return the second in a server's proof, or ``None`` if the proof is wrong."""
        match = _PROOF.fullmatch(proof)
        return (
            int(match[1]) if match and self._is_signed("server", nonce, *match.groups()) else None
        )

    def make_code(self, nonce: str, second: int) -> str:
        """Return a code that opens the page; no two have the same nonce."""
        return f"{second}.{nonce}.{self._sign('code', nonce, second)}"

    def check_code(self, code: str) -> tuple[str, int] | None:
        """Return the nonce and the second in a code, or ``None`` if it is not for this server."""
        match = _CODE.fullmatch(code)
        if match and self._is_signed("code", match[2], match[1], match[3]):
            return match[2], int(match[1])
        return None

    def _is_signed(self, purpose: str, nonce: str, second: str, signature: str) -> bool:
        from hmac import compare_digest

        return compare_digest(self._sign(purpose, nonce, int(second)), signature)

    def _sign(self, purpose: str, nonce: str, second: int) -> str:
        import hmac  # loads OpenSSL

        text = json.dumps([purpose, self.origin, self.pid, self.started, nonce, second])
        return hmac.new(self.token.encode(), text.encode(), "sha256").hexdigest()
