"""The table of language models: context windows, reserves, and names.

Context windows are taken from the providers' public documentation. If a page gives only a rounded
figure, K is read as 1,000 and M as 1,000,000, so that the table never promises too much. Models
change faster than releases: the setting `models.NAME.context_window` overrides and adds entries.

Output limits were added later. If a comment cites no page for one, it is a commonly quoted figure,
not one from the provider's documentation. Models with an unknown limit have none.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["ALIASES", "MODELS", "Model", "find_model", "match_name", "near_names"]


@dataclass(frozen=True, slots=True)
class Model:
    """A language model and its sizes in tokens.

    :param reserve: tokens to keep for the answer.
    :param output_limit: the longest answer the provider allows, if known.
    """

    name: str
    context_window: int
    reserve: int
    recommended: int | None = None
    output_limit: int | None = None


def _reserve(window: int) -> int:
    """Return the reserve: a quarter of a small window, 1/16 of others, at most 8,192.

    This rule reproduces the reserves of an older table: 1,024 of 4,096, 2,048 of 8,192,
    1,024 of 16,384, 2,048 of 32,768, 8,000 of 128,000 and 8,192 of 200,000.
    """
    return window // 4 if window <= 8_192 else min(8_192, window // 16)


def _models(
    window: int, *names: str, reserve: int | None = None, output: int | None = None
) -> tuple[Model, ...]:
    reserve = _reserve(window) if reserve is None else reserve
    return tuple(Model(name, window, reserve, output_limit=output) for name in names)


# OpenAI, "Reasoning models" guide: reserve at least 25,000 tokens for reasoning and output.
_REASONING_RESERVE = 25_000
# Microsoft, "Foundry Models sold by Azure": gpt-5 and later take at most window - 128,000 of input
# (400,000 = 272,000 + 128,000), the chat variants window - 16,384 (128,000 = 111,616 + 16,384).
# The rest is the output limit.
_GPT5_OUTPUT = 128_000
_GPT5_CHAT_OUTPUT = 16_384


def _gpt5(window: int, *names: str, output: int = _GPT5_OUTPUT) -> tuple[Model, ...]:
    return _models(window, *names, reserve=output, output=output)


_OPENAI = (
    # OpenAI, model pages of gpt-3.5-turbo (the 4K original, still the safe reading of the bare
    # name), gpt-4, gpt-4-turbo, gpt-4o and gpt-4o-mini.
    # Output limits: OpenAI's page of gpt-4-turbo (4,096); the others are commonly given.
    *_models(4_096, "gpt-3.5-turbo", output=4_096),
    *_models(8_192, "gpt-4", output=8_192),
    *_models(128_000, "gpt-4-turbo", output=4_096),
    *_models(128_000, "gpt-4o-mini", output=16_384),
    Model("gpt-4o", 128_000, 8_000, recommended=100_000, output_limit=16_384),
    # Microsoft, "Azure OpenAI fine-tuning models": gpt-35-turbo 1106 and 0125, 16,385 tokens.
    *_models(16_385, "gpt-3.5-turbo-16k", "gpt-3.5-turbo-1106", "gpt-3.5-turbo-0125"),
    # Microsoft, "Foundry Models sold by Azure", GPT-4.1 series; the same on OpenAI's model pages.
    *_models(1_047_576, "gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano", output=32_768),
    # Ibid., o-series.
    *_models(128_000, "o1-mini", "o1-preview", reserve=_REASONING_RESERVE),
    *_models(
        200_000,
        "o1",
        "o3",
        "o3-mini",
        "o3-pro",
        "o4-mini",
        "codex-mini",
        reserve=_REASONING_RESERVE,
        output=100_000,  # ibid.
    ),
    # Ibid., GPT-5, GPT-5.1, GPT-5.2, GPT-5.3 and GPT-5.4.
    *_gpt5(400_000, "gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-5-pro"),
    *_gpt5(400_000, "gpt-5-codex", "gpt-5.1", "gpt-5.1-codex"),
    *_gpt5(400_000, "gpt-5.1-codex-mini", "gpt-5.1-codex-max"),
    *_gpt5(400_000, "gpt-5.2", "gpt-5.2-codex", "gpt-5.3-codex"),
    *_gpt5(400_000, "gpt-5.4-mini", "gpt-5.4-nano"),
    *_gpt5(
        128_000,
        "gpt-5-chat",
        "gpt-5.1-chat",
        "gpt-5.2-chat",
        "gpt-5.3-chat",
        output=_GPT5_CHAT_OUTPUT,
    ),
    # Ibid., GPT-5.4 and GPT-5.5: 1,050,000 = 922,000 + 128,000.
    *_gpt5(1_050_000, "gpt-5.4", "gpt-5.4-pro", "gpt-5.5"),
    # models.dev, from OpenAI's model pages of GPT-5.6 and GPT-6: the same split.
    *_gpt5(1_050_000, "gpt-5.6", "gpt-5.6-luna", "gpt-6-astra", "gpt-6-sol"),
    # Microsoft, "Foundry Models sold by Azure", gpt-oss.
    *_models(131_072, "gpt-oss:20b", "gpt-oss:120b"),
)

_ANTHROPIC = (
    # Output limits, as other projects list them: 4,096 of Claude 3, 8,192 of 3.5, 64K of Sonnet 3.7
    # (some: 8,192) to 4.5, of Haiku 4.5 and of Opus 4.5, 32K of Opus 4 and 4.1, 128K since 4.6.
    # Windows: Anthropic, "Models overview", 200K. The current page gives 1M for Sonnet 4.6; 200K
    # was its limit without a beta header when it was released, and is always safe.
    Model("claude-sonnet-4-6", 200_000, 8_192, recommended=150_000, output_limit=128_000),
    Model("claude-opus-4", 200_000, 8_192, recommended=150_000, output_limit=32_000),
    # Anthropic, help article on the context window of the Claude API: 200K for all models up to
    # 4.5 (1M of Sonnet 4 and 4.5 only with a beta header).
    *_models(200_000, "claude-3-haiku", "claude-3-sonnet", "claude-3-opus", output=4_096),
    *_models(200_000, "claude-3-5-haiku", "claude-3-5-sonnet", output=8_192),
    *_models(200_000, "claude-3-7-sonnet", "claude-sonnet-4", "claude-sonnet-4-5", output=64_000),
    *_models(200_000, "claude-haiku-4-5", "claude-opus-4-5", output=64_000),
    *_models(200_000, "claude-opus-4-1", output=32_000),
    # Anthropic, "Models overview" and the pages of the single models; Microsoft, "Claude models in
    # Microsoft Foundry": 1M without a header.
    *_models(1_000_000, "claude-opus-4-6", "claude-opus-4-7", "claude-opus-4-8", output=128_000),
    *_models(1_000_000, "claude-opus-5", "claude-opus-5-5", "claude-sonnet-5", output=128_000),
    *_models(1_000_000, "claude-sonnet-5-5", "claude-haiku-5-5", output=128_000),
    *_models(1_000_000, "claude-fable-5-1", output=128_000),
    *_models(1_000_000, "claude-fable-5"),
)

_GOOGLE = (
    # Google, model pages of the Gemini API and of Vertex AI: the input limit, which does not
    # include the output.
    *_models(1_048_576, "gemini-1.5-flash", "gemini-2.0-flash", "gemini-2.0-flash-lite"),
    *_models(1_048_576, "gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite"),
    *_models(1_048_576, "gemini-3-flash-preview", "gemini-3.8-flash"),
    # Google, Vertex AI documentation: "up to a 2M token context window".
    *_models(2_000_000, "gemini-1.5-pro"),
    # Google, Gemma 2 model discussion: 8,192.
    *_models(8_192, "gemma2"),
    # Hugging Face and Google, "Welcome Gemma 3": 32K for 1B, 128K for the rest; LM Studio, page of
    # gemma-3-270m: 32K.
    *_models(32_000, "gemma3:270m", "gemma3:1b"),
    *_models(128_000, "gemma3"),
    # Google, "Gemma models overview": 128K for the small sizes of Gemma 4, 256K for the others.
    *_models(128_000, "gemma4"),
    *_models(256_000, "gemma4:26b", "gemma4:31b"),
)

_META = (
    # A window that fits local machines; Meta's model card of Llama 3.1 allows 128K.
    *_models(32_768, "llama3.1:8b", "llama3.1:70b"),
    # Meta, llama-models README, "Llama Models": 8K.
    *_models(8_192, "llama3:8b"),
    Model("llama3:70b", 8_192, 2_048, recommended=6_000),
    # Meta, Code Llama model card: fine-tuned with up to 16K.
    *_models(16_384, "codellama"),
    # Meta, Llama 3.2 model card; Microsoft, "Foundry Models sold by Azure", Llama 3.3: 128K.
    *_models(128_000, "llama3.2", "llama3.3"),
    # Hugging Face and Meta, "Welcome Llama 4": 10M and 1M.
    *_models(10_000_000, "llama4:scout"),
    *_models(1_000_000, "llama4:maverick"),
)

_OTHERS = (
    # Mistral AI, Mistral-7B-Instruct v0.2 and v0.3, and the Mixtral paper: 32K contexts.
    *_models(32_768, "mistral:7b", "mixtral:8x7b"),
    # Ollama library, mistral-large and mistral-nemo; Google Cloud, "Mistral Medium 3"; Azure
    # catalogue, Mistral Small 3.1: 128K.
    *_models(128_000, "mistral-large", "mistral-nemo", "mistral-medium-3", "mistral-small3.1"),
    # Vercel AI Gateway, page of mistral-large-3.
    *_models(262_144, "mistral-large-3"),
    # Qwen, model cards: 32,768 as configured (more only with YaRN).
    *_models(32_768, "qwen2.5", "qwen2.5-coder"),
    # Qwen, Qwen3 README, "Run Qwen3": 40,960; the 2507 editions 256K.
    *_models(40_960, "qwen3"),
    *_models(256_000, "qwen3-30b-a3b-instruct-2507", "qwen3-235b-a22b-instruct-2507"),
    # Qwen, Qwen3-Coder model card: "262,144 natively".
    *_models(262_144, "qwen3-coder"),
    # DeepSeek, "Models & Pricing"; Microsoft, "Foundry Models sold by Azure": 128K, V4 1M.
    *_models(128_000, "deepseek-chat", "deepseek-reasoner", "deepseek-r1", "deepseek-v3.2"),
    *_models(1_000_000, "deepseek-v4-flash", "deepseek-v4-pro"),
    # Microsoft, configurations and cards of phi-4, Phi-4-mini-instruct, Phi-3-mini-4k-instruct.
    *_models(16_384, "phi4"),
    *_models(131_072, "phi4-mini"),
    *_models(4_096, "phi-3-mini-4k-instruct"),
    # Microsoft, "Foundry Models sold by Azure", Moonshot AI and Grok.
    *_models(262_144, "kimi-k2.5", "kimi-k2.6"),
    *_models(200_000, "grok-4.6"),
    *_models(500_000, "grok-4.7"),
)

MODELS: tuple[Model, ...] = (*_OPENAI, *_ANTHROPIC, *_GOOGLE, *_META, *_OTHERS)


def _hosted_llamas() -> Iterator[tuple[str, str]]:
    """Yield the names that other hosts use for Llama models, and the names in this table."""
    for version, size, ours in (
        ("3", "8b", "llama3:8b"),
        ("3", "70b", "llama3:70b"),
        ("3.1", "8b", "llama3.1:8b"),
        ("3.1", "70b", "llama3.1:70b"),
        ("3.2", "1b", "llama3.2"),
        ("3.2", "3b", "llama3.2"),
        ("3.3", "70b", "llama3.3"),
    ):
        for name in (f"llama-{version}-{size}", f"llama{version.replace('.', '-')}-{size}"):
            for ending in ("", "-instruct", "-instant", "-versatile"):
                yield name + ending, ours
        yield f"meta-llama-{version}-{size}-instruct", ours


#: Other names of models; a bare name is Ollama's default tag.
_OTHER_NAMES = {
    "claude-sonnet-4": "claude-sonnet-4-0",
    "claude-opus-4": "claude-opus-4-0",
    "claude-3-5-sonnet": "claude-3-5-sonnet-v2",
    # Four-digit snapshots, which the pattern of date suffixes does not cover.
    "gpt-3.5-turbo": "gpt-3.5-turbo-0301 gpt-3.5-turbo-0613 gpt-35-turbo",
    "gpt-3.5-turbo-16k": "gpt-35-turbo-16k",
    "gpt-4": "gpt-4-0314 gpt-4-0613",
    "gpt-4-turbo": "gpt-4-0125-preview gpt-4-1106-preview gpt-4-turbo-preview",
    "gpt-4o": "chatgpt-4o",
    "gpt-oss:20b": "gpt-oss gpt-oss-20b gpt-oss-20b-1",
    "gpt-oss:120b": "gpt-oss-120b gpt-oss-120b-1",
    "gemini-1.5-flash": "gemini-1.5-flash-001 gemini-1.5-flash-002",
    "gemini-1.5-pro": "gemini-1.5-pro-001 gemini-1.5-pro-002",
    "gemini-2.0-flash": "gemini-2.0-flash-001",
    "gemini-2.0-flash-lite": "gemini-2.0-flash-lite-001",
    "gemini-3-flash-preview": "gemini-3-flash",
    "gemma2": "gemma-2-9b-it gemma-2-27b-it",
    "gemma3:1b": "gemma-3-1b-it",
    "gemma3": "gemma-3-4b-it gemma-3-12b-it gemma-3-27b-it",
    "llama3:8b": "llama3",
    "llama3.1:8b": "llama3.1",
    "llama4:scout": "llama4 llama4:16x17b llama-4-scout llama-4-scout-17b-16e-instruct",
    "llama4:maverick": "llama4:128x17b llama-4-maverick llama-4-maverick-17b-128e-instruct "
    "llama-4-maverick-17b-128e-instruct-fp8",
    "codellama": "code-llama",
    "mistral:7b": "mistral mistral-7b-instruct mistral-7b-instruct-v0.2 mistral-7b-instruct-v0.3 "
    "open-mistral-7b",
    "mixtral:8x7b": "mixtral mixtral-8x7b-instruct mixtral-8x7b-instruct-v0.1 open-mixtral-8x7b",
    "mistral-nemo": "open-mistral-nemo",
    "mistral-medium-3": "mistral-medium",
    "mistral-small3.1": "mistral-small-3.1",
    "qwen3": "qwen3-0.6b qwen3-1.7b qwen3-4b qwen3-8b qwen3-14b qwen3-32b qwen3-30b-a3b "
    "qwen3-235b-a22b",
    "qwen3-coder": "qwen3-coder-30b-a3b-instruct qwen3-coder-480b-a35b-instruct",
    "deepseek-r1": "deepseek-r1-0528",
    "phi4": "phi-4",
    "phi4-mini": "phi-4-mini phi-4-mini-instruct",
}
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        # Aggregators write dots for dashes: claude-sonnet-4.5.
        **{
            dotted: model.name
            for model in _ANTHROPIC
            if (dotted := re.sub(r"(\d)-(\d)", r"\1.\2", model.name)) != model.name
        },
        **dict(_hosted_llamas()),
        **{
            f"qwen2.5{kind}-{size}b-instruct": f"qwen2.5{kind}"
            for kind in ("", "-coder")
            for size in ("0.5", "1.5", "3", "7", "14", "32", "72")
        },
        **{other: name for name, others in _OTHER_NAMES.items() for other in others.split()},
    }
)

#: Patterns are compiled when a name is first looked up.
_PREFIX = r"""(?:
      [^/]+/                                                        # openai/, models/, host:1/ns/
    | (?:openai|azure|anthropic|bedrock|google|google-gla|google-vertex|vertex_ai|gemini|ollama
        |groq|deepseek|openrouter|together|fireworks|xai|ft):       # openai:gpt-4o, ft:gpt-4o
    | mistral:(?=[\w-]*tral)                                        # mistral:7b is a tag
    | (?:[a-z]{2,6}(?:-gov)?\.)?(?:anthropic|meta|mistral|openai|qwen|google)\.   # us.anthropic.
    )(?=.)"""
_DATE = r"""(?:
      [-@](?:20\d{6}|20\d\d-\d\d-\d\d)(?:-v\d+(?::\d+)?)?           # -20250929, -20250514-v1:0
    | -v\d+:\d+ | (?<=\d)-v1                                        # the model version of Bedrock
    | [-@](?:latest|default)
    )$"""


def _without_prefixes(name: str) -> list[str]:
    forms = [name]
    while match := re.match(_PREFIX, forms[-1], re.VERBOSE):
        forms.append(forms[-1][match.end() :])
    return forms


def _without_date(name: str) -> str:
    return re.sub(_DATE, "", name, flags=re.VERBOSE)


def _without_tag(name: str) -> Iterator[str]:
    """Yield the name with its tag shortened step by step: x:8b-q4 gives x:8b, then x."""
    base, _, tag = name.partition(":")
    parts = tag.split("-")
    for count in range(len(parts) - 1, 0, -1):
        yield f"{base}:{'-'.join(parts[:count])}"
    yield base


def _forms(name: str) -> Iterator[str]:
    """Yield the forms of a name to look up, the most literal first; never a mere prefix."""
    bare = _without_prefixes(name.strip().casefold())
    yield from bare
    yield from map(_without_date, bare)
    if ":" in bare[-1]:
        for form in _without_tag(bare[-1]):
            yield form
            yield _without_date(form)


def match_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that matches a name.

    Case is ignored. The name is tried unchanged, then without the provider's prefix, then without a
    date or version suffix, then with the `:tag` shortened step by step; each form is also looked up
    in `ALIASES`. A prefix does not match: gpt-4.1 and gpt-4-32k are not gpt-4.

    :param known: names of the table, of the settings, or both. Among names that differ only in
        case, one spelled like `name` wins, else the first.
    :returns: the known name in its own spelling, or None.
    """
    spelling: dict[str, str] = {}
    for candidate in known:
        if candidate == name:
            return candidate
        spelling.setdefault(candidate.casefold(), candidate)
    for form in _forms(name):
        if form in spelling:
            return spelling[form]
        if ALIASES.get(form) in spelling:
            return spelling[ALIASES[form]]
    return None


def find_model(name: str, known: Iterable[Model] = MODELS) -> Model | None:
    """Return the model that matches a name, by the rules of `match_name`."""
    by_name = {model.name: model for model in known}
    match = match_name(name, by_name)
    return None if match is None else by_name[match]


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return at most three known names of the same family as a name, else the most similar ones."""
    spelling = {candidate.casefold(): candidate for candidate in known}
    wanted = _without_prefixes(name.strip().casefold())[-1]
    import difflib

    close = difflib.get_close_matches(wanted, spelling, n=len(spelling), cutoff=0.5)
    family = [near for near in close if near.startswith(wanted) and _is_family(wanted, near)]
    near = family or difflib.get_close_matches(wanted, spelling)
    return [spelling[name] for name in near[:3]]


def _is_family(name: str, known: str) -> bool:
    """Return whether one name extends the other after a separator, such as gpt-3.5-turbo."""
    short, long = sorted((name, known), key=len)
    return long.startswith(short) and long[len(short) :][:1] in "-:.@_"
