"""Clock, metric and log definitions."""
