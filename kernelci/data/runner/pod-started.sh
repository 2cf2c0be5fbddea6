#!/bin/bash
# A job's admission in a pod of Actions Runner Controller: ACTIONS_RUNNER_HOOK_JOB_STARTED names this file, from a ConfigMap.
# Patterns are separated by spaces; `*` crosses slashes. What is not named admits nothing.
set -uf

refuse() {
  echo "::error title=not taken by this pool::$1"
  sleep "${KERNELCI_LAST_WORDS_S:-2}"
  # Steps with `if: always()` would run even after a hook that failed: GitHub's worker, which called us, has to end.
  kill -KILL "$PPID"
  exit 1
}

among() {
  local what=$1 said=$2 pattern
  for pattern in $3; do
    # shellcheck disable=SC2053 # the right side is a pattern
    if [[ -n $said && $said == $pattern ]]; then return; fi
  done
  refuse "$what '${said//[^[:print:]]/?}' is not admitted here"
}

among repository "${GITHUB_REPOSITORY:-}" "${KERNELCI_REPOSITORIES:-}"
among workflow "${GITHUB_WORKFLOW_REF:-}" "${KERNELCI_WORKFLOWS:-}"
among ref "${GITHUB_REF:-}" "${KERNELCI_REFS:-}"
among event "${GITHUB_EVENT_NAME:-}" "${KERNELCI_EVENTS:-}"
among actor "${GITHUB_ACTOR:-}" "${KERNELCI_ACTORS:-}"
among "actor of the rerun" "${GITHUB_TRIGGERING_ACTOR:-${GITHUB_ACTOR:-}}" "${KERNELCI_ACTORS:-}"

# The pod has its GPUs for itself. Where the driver shows others' processes, or memory that is in use, it has not.
query=(timeout 20 nvidia-smi --format=csv,noheader,nounits)
used=$("${query[@]}" --query-gpu=memory.used) || refuse "nvidia-smi does not answer"
for mib in $used; do
  if [[ ! $mib =~ ^[0-9]+$ || $mib -gt ${KERNELCI_GPU_MEMORY_USED_MIB:-2048} ]]; then
    refuse "$mib MiB of a GPU's memory are in use, and no job runs"
  fi
done
broken=$("${query[@]}" --query-gpu=ecc.errors.uncorrected.volatile.total)
if [[ $broken =~ [1-9] ]]; then refuse "a GPU has uncorrected memory errors"; fi
echo "kernelci: this pool takes the job"
