#!/bin/bash
# A stand-in for GitHub's run.sh: as that one it ends with 0 whatever happened, but for a version that is no longer served.
cd "$(dirname "$0")" || exit 1
/usr/bin/env python3 -I ./listener.py
code=$?
if [[ $code -eq 7 && $ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE == 1 ]]; then exit 7; fi
exit 0
