"""One suite per port, run by the tests of every adapter."""
