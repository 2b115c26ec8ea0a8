#!/bin/sh
set -e
# Not at an upgrade: dpkg says "upgrade", rpm 1.
case "${1:-}" in
upgrade | 1) exit 0 ;;
esac
if [ -e /etc/apparmor.d/workshop ]; then
	if command -v apparmor_parser >/dev/null; then
		apparmor_parser --remove /etc/apparmor.d/workshop || true
	fi
	rm -f /etc/apparmor.d/workshop
fi
