"""Between backends and rungs: one kernel file loaded, built for a target, and kept by content."""
