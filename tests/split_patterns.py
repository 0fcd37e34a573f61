"""How tokenizers of the GPT-4 kind cut a text into pieces before any merge."""

CL100K = [
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    r"[^\r\n\p{L}\p{N}]?\p{L}+",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
]
"""Numbers in groups of three, contractions in any case."""
ONE_DIGIT = [part.replace("{1,3}", "") for part in CL100K]
"""As Qwen has it: digits one by one."""
