"""Floor 2: processes, the protocol between them, memory, draws, the oracle, the comparison."""
