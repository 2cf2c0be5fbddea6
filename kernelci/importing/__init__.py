"""`import`: a script with a kernel, a wrapper and a check by torch becomes a kernel with a card and a reference to
complete. The script is read, never run."""
