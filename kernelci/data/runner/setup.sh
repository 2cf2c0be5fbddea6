#!/bin/bash
# Sets up a GPU host that takes one job at a time from GitHub. Run it as root, as often as you like: what is there stays.
#
#   setup.sh REPOSITORY WORKFLOWS VERSION SHA256 [SOURCE]
#
# REPOSITORY  OWNER/NAME, or an organization        WORKFLOWS  a pattern of OWNER/NAME/PATH@REF
# VERSION     of GitHub's runner                    SHA256     of its linux archive: the release's page names both
# SOURCE      what pip installs as kernelci         else the package of that name
#
# Before it, put the token into /etc/kernelci/token, or the App's key into /etc/kernelci/app.pem, with mode 600.
set -euo pipefail

if [[ $# -lt 4 || $# -gt 5 ]]; then
  sed -n '4,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
repository=$1 workflows=$2 version=$3 sha256=$4 source=${5:-kernelci}
etc=${KERNELCI_ETC:-/etc/kernelci} opt=${KERNELCI_OPT:-/opt/kernelci} units=${KERNELCI_UNITS:-/etc/systemd/system}

if [[ ! -f $etc/token && ! -f $etc/app.pem ]]; then
  echo "setup: $etc holds neither token nor app.pem" >&2
  exit 2
fi
for file in "$etc"/token "$etc"/app.pem; do
  if [[ -f $file ]]; then chmod 600 "$file"; fi
done

for user in kernelci-job kernelci-broker; do
  id "$user" > /dev/null 2>&1 || useradd --system --no-create-home --shell /usr/sbin/nologin "$user"
done

# Root's own, and readable: the broker and the known sum run from it as other users.
if [[ ! -x $opt/bin/kernelci ]]; then
  python3 -m venv "$opt"
  "$opt/bin/python" -m pip install --quiet "${source/#kernelci/kernelci[gpu,github]}"
fi

if [[ ! -f $etc/kernelci.toml ]]; then
  cat > "$etc/kernelci.toml" << END
[runner]
repository = "$repository"
workflows = ["$workflows"]
version = "$version"
sha256 = "$sha256"
END
  chmod 644 "$etc/kernelci.toml"
fi

"$opt/bin/kernelci" --root "$etc" runner setup
"$opt/bin/kernelci" --root "$etc" runner unit --to "$units" --credentials "$etc"
systemctl daemon-reload
systemctl enable --now nvidia-persistenced.service || echo "setup: no nvidia-persistenced; see kernelci doctor --runner" >&2
systemctl enable --now kernelci-broker.service
"$opt/bin/kernelci" --root "$etc" doctor --runner
systemctl enable --now kernelci-runner.service
