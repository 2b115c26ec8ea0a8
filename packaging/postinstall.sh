#!/bin/sh
set -e
# The profile is only for kernels that restrict user namespaces: parsers of others don't
# know its words.
if [ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ] && command -v apparmor_parser >/dev/null; then
	install -m 0644 /usr/share/workshop/apparmor /etc/apparmor.d/workshop
	apparmor_parser --replace --write-cache /etc/apparmor.d/workshop ||
		echo "workshop: AppArmor didn't load its profile: without root, the namespace engine won't start" >&2
fi
