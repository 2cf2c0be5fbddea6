"""The self-hosted machine: takes one job at a time from GitHub, and is afterwards what it was before.

`host` is the loop, `health` says whether the machine may take a job, `broker` is the process of another user that holds
the token. What a job says is a claim; whom the kernel names as its peer is a fact.
"""
