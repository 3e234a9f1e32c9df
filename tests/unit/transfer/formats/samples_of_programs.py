"""The contents of samples of programs, which were written by hand after their descriptions."""

from typing import Any

FILES: dict[str, list[tuple[Any, ...]]] = {
    "pi.jsonl": [
        ("user", "How hot for stoneware?", "08:01:00", "0197-kiln"),
        ("assistant", 'read({"path": "glaze.md"})', "08:02:00", "0197-kiln"),
        ("system", "Look it up in the notes.", "08:02:00", "0197-kiln"),
        ("tool", "1,250 degrees", "08:03:00", "0197-kiln"),
        ("assistant", "1,250 degrees.", "08:05:00", "0197-kiln"),
        ("user", "And the shelf?\n[image]", "08:06:00", "0197-kiln"),
        ("assistant", 'bash({"command": "cat shelf.md"})', "08:07:00", "0197-kiln"),
        ("tool", "silicon carbide", "08:07:00", "0197-kiln"),
        ("assistant", "Silicon carbide.", "08:08:00", "0197-kiln"),
    ],
    "droid.jsonl": [
        ("user", "How many threads for a scarf?", "08:01:00", "d-loom"),
        ("assistant", 'Read({"file": "sett.txt"})', "08:02:00", "d-loom"),
        ("system", "Width times sett.", "08:02:00", "d-loom"),
        ("tool", "12 an inch", "08:03:00", "d-loom"),
        ("assistant", "Ninety-six.", "08:04:00", "d-loom"),
    ],
    "amp.json": [
        ("user", "When do I feed them?", "08:01:00", "T-bees"),
        ("assistant", "Let me check the log.", "08:02:00", "T-bees"),
        ("system", "Nights below ten.", "08:02:00", "T-bees"),
        ("tool", "first frost: October", "08:02:00", "T-bees"),
        ("assistant", "In September.", "08:03:00", "T-bees"),
    ],
    "qwen-code.jsonl": [
        ("user", "Which oven is free?", "08:01:00", "q-oven"),
        ("assistant", 'read_file({"path": "plan.txt"})', "08:02:00", "q-oven"),
        ("system", "Ask the plan.", "08:02:00", "q-oven"),
        ("tool", "oven 2: free", "08:03:00", "q-oven"),
        ("assistant", "Oven two.", "08:05:00", "q-oven"),
        ("user", "Until when?\n[image]", "08:07:00", "q-oven"),
    ],
    "kimi-code.jsonl": [
        ("user", "When is high water?", "08:01:00", "kimi-code"),
        ("assistant", "One moment.", "08:02:00", "kimi-code"),
        ("system", "Look at the table.", "08:02:00", "kimi-code"),
        ("tool", "14:05", "08:03:00", "kimi-code"),
        ("assistant", "At five past two.", "08:04:00", "kimi-code"),
        ("user", "Thanks.", "08:05:00", "kimi-code"),
    ],
    "antigravity.jsonl": [
        ("user", "Where is the leak?", "08:01:00", "antigravity"),
        ("assistant", 'view_file({"path": "valve.md"})', "08:02:00", "antigravity"),
        ("system", "Open the valve file.", "08:02:00", "antigravity"),
        ("tool", "The seal is worn.", "08:03:00", "antigravity"),
        ("assistant", "At the seal of the valve.", "08:04:00", "antigravity"),
    ],
    "gemini.json": [
        ("user", "How do I oil a hinge?", "08:01:00", "first"),
        ("assistant", "Use graphite:\n\n- clean it\n- one drop & wait", "08:01:00", "first"),
        ("user", "And a lock?", "08:04:00", "first"),
    ],
    "deepseek.json": [
        ("user", "How long do lentils cook?", "08:01:00", "ds-soup"),
        ("assistant", "Brown ones forty minutes.", "08:03:00", "ds-soup"),
        ("system", "Red or brown?", "08:03:00", "ds-soup"),
    ],
    "grok.json": [
        ("user", "How do I descale one?", "08:01:00", "g-1"),
        ("assistant", "With citric acid.", "08:02:00", "g-1"),
        ("system", "Acid dissolves lime.", "08:02:00", "g-1"),
    ],
    "librechat.json": [
        ("user", "How long do I proof rye?", "08:01:00", "lc-1"),
        ("assistant", 'notes({"q": "rye"})', "08:03:00", "lc-1"),
        ("system", "Depends on warmth.", "08:03:00", "lc-1"),
        ("tool", "two hours", "08:03:00", "lc-1"),
        ("assistant", "Two hours.", "08:03:00", "lc-1"),
        ("user", "And wheat?", "08:04:00", "lc-1"),
    ],
    "llama-cpp.jsonl": [
        ("user", "How many eggs?", "08:01:00", "w-1"),
        ("assistant", "Three eggs.", "08:03:00", "w-1"),
        ("system", "It is a large cake.", "08:03:00", "w-1"),
        ("user", "[image]\nLarge ones?", "08:04:00", "w-1"),
    ],
    "cursor.jsonl": [
        ("user", "Rename the cellar table.", None, "cursor"),
        ("assistant", "It becomes vault.", None, "cursor"),
        ("assistant", "Renamed.", None, "cursor"),
    ],
    "continue.json": [
        ("user", "The loop drops the last try.", None, "co-1"),
        ("system", "Off by one?", None, "co-1"),
        ("assistant", "read({})", None, "co-1"),
        ("tool", "range(3)", None, "co-1"),
        ("assistant", "The bound is off by one.", None, "co-1"),
    ],
}

REASONS: dict[str, list[tuple[str, str]]] = {
    "pi.jsonl": [("line 13", "not a message")],
    "droid.jsonl": [("line 7", "unknown role")],
    "amp.json": [("the document, message 5", "unknown role")],
    "qwen-code.jsonl": [("line 9", "not a message")],
    "antigravity.jsonl": [("line 6", "no type")],
    "gemini.json": [("entry 5", "no title")],
    "deepseek.json": [("entry 2", "no mapping of messages")],
    "grok.json": [
        ("the document, conversation 1, message 3", "unknown role"),
        ("the document, conversation 1, message 4", "not a message"),
        ("the document, conversation 2", "no list of messages"),
    ],
    "llama-cpp.jsonl": [("line 7", "not a message")],
    "cursor.jsonl": [("line 4", "unknown role")],
    "continue.json": [("the document, message 5", "unknown role")],
}

#: Title, source and model of each conversation.
PROGRAMS: dict[str, dict[str, tuple[Any, ...]]] = {
    "pi.jsonl": {"0197-kiln": ("Firing stoneware", "pi", "clay-2")},
    "droid.jsonl": {"d-loom": ("Warp the loom", "droid", None)},
    "amp.json": {"T-bees": ("Feed the bees", "amp", "amber")},
    "qwen-code.jsonl": {"q-oven": ("Free ovens", "qwen-code", "wheat-3")},
    "kimi-code.jsonl": {"kimi-code": (None, "kimi-code", "tide-2")},
    "antigravity.jsonl": {"antigravity": (None, "antigravity", None)},
    "gemini.json": {
        "a04f81497c8e0448c02431315f39f98c": (None, "gemini", None),
        "182d1b1363859b89548b4bac748a8793": (None, "gemini", None),
    },
    "deepseek.json": {"ds-soup": ("Soup", "deepseek", "ladle")},
    "grok.json": {"g-1": ("Kettles", "grok", "steam-4")},
    "librechat.json": {"lc-1": ("Rye bread", "librechat", "rye-5")},
    "llama-cpp.jsonl": {"w-1": ("Eggs", "llama-cpp", "hen-1")},
    "cursor.jsonl": {"cursor": (None, "cursor", None)},
    "continue.json": {"co-1": ("Retry loop", "continue", "Sonata")},
}

#: What models thought, apart from their replies.
THOUGHTS = (
    "Look it up in the notes.",
    "Width times sett.",
    "Nights below ten.",
    "Ask the plan.",
    "Look at the table.",
    "Open the valve file.",
    "Red or brown?",
    "Acid dissolves lime.",
    "Depends on warmth.",
    "It is a large cake.",
    "Off by one?",
)
