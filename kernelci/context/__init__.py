"""What an agent can look up: sources, their chunks, the index, the search, and the ladder as tools (a wing: no torch).

    sources → reading → chunks → shard (one per source, replaced whole) → search → commands, tools

Everything that stands in a source is data from elsewhere: bounded, labelled, and never an instruction to anybody.
"""
