"""`kernelci run --on HOST`: the run happens on a machine that has kernelci, and its report folder comes back here.

One ssh connection carries all of it. Standard input: a line with the request, the project as an archive, then a byte
now and then for as long as somebody waits. Standard output: a line that greets, a line with the answer, the report
folder as an archive. Standard error: progress. Where the bytes stop, the machine ends the run and removes all.
"""

PROTOCOL = 1
GREETING = b"kernelci hosted "
BEAT_S = 5.0
SILENCE_S = 60.0
