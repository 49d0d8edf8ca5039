"""Contract suites: what every adapter of a port must do.

An adapter's tests subclass a suite and give the fixture that its module describes.
"""
