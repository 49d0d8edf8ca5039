"""The Kafka protocol: framing, headers, message tables and the codec made from them.

In reading order: `schema/` describes the messages, `layout` works out one version of them, `reader_source`
and `writer_source` turn that into functions, `codec` keeps the functions, `coding` applies them to bodies,
`framing` puts headers around bodies, `negotiation` answers ApiVersions. The rest of Floe imports `messages`,
`apis` and `framing`.
"""
