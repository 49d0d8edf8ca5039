"""The message tables: one class per struct of the protocol, in files by group of APIs."""
