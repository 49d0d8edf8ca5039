"""Stored forms of a vnode's rows: fixed structs, one module per kind, each with its keys."""
