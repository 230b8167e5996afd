"""Studies with a protocol that was written before they were run."""
