#!/bin/sh
# Removes the host rules of workshop:
#     workshop firewall export --for iptables --remove | sudo sh
set -eu
chains="WORKSHOP-1000-FORWARD WORKSHOP-1000-INPUT WORKSHOP-1000-OUTPUT WORKSHOP-1000-NEVER WORKSHOP-1000-PRIVATE"
used="" # those of the chains that have rules

rules() {
	case $1 in
	iptables) cat <<'RULES'
RULES
		;;
	ip6tables) cat <<'RULES'
RULES
		;;
	esac
}

fail() {
	echo "workshop: error: $*" >&2
	exit 1
}

# transaction TOOL TABLES prints all changes as one transaction of TOOL-restore. A chain
# that is there is emptied by its name alone, a jump that is there stays where it is.
# TABLES is "empty" or "present".
transaction() {
	has() { [ "$tables" = present ] && "$tool" -w -C "$1" -j "$2" 2>/dev/null; }
	tool=$1 tables=$2 user=FORWARD
	if [ "$tables" = present ] && "$tool" -w -n -L DOCKER-USER >/dev/null 2>&1; then user=DOCKER-USER; fi
	echo '*filter'
	for chain in $chains; do echo ":$chain - [0:0]"; done
	for jump in DOCKER-USER=FORWARD FORWARD=FORWARD INPUT=INPUT OUTPUT=OUTPUT; do
		from=${jump%=*} chain=WORKSHOP-1000-${jump#*=} wanted=
		case " $used " in *" $chain "*) wanted=yes ;; esac
		if [ "${jump#*=}" = FORWARD ] && [ "$from" != "$user" ]; then wanted=; fi
		if has "$from" "$chain"; then
			[ -n "$wanted" ] || echo "-D $from -j $chain"
		elif [ -n "$wanted" ]; then
			echo "-I $from -j $chain"
		fi
	done
	rules "$tool"
	for chain in $chains; do
		case " $used " in *" $chain "*) ;; *) echo "-X $chain" ;; esac
	done
	echo COMMIT
}

# load looks at the tables first: TOOL-restore locks them while it reads.
load() {
	text=$(transaction "$1" present) && printf '%s\n' "$text" | "$1-restore" -w --noflush
}

there() { "$1" -w -S 2>/dev/null | grep -q '^-N WORKSHOP-1000-'; }

# find_tools sets tools to those that there are tables for.
find_tools() {
	tools="ip6tables iptables"
	if [ ! -e /proc/net/if_inet6 ]; then
		tools=iptables
		echo "workshop: this machine has no IPv6: its rules are left out" >&2
	fi
	for tool in $tools; do
		command -v "$tool-restore" >/dev/null || fail "$tool-restore isn't there (Debian: apt install iptables); nothing was changed"
	done
}
# Called by the last line: of a text that was cut off nothing runs.
main() {
	find_tools
	for tool in $tools; do
		if there "$tool"; then
			load "$tool" || fail "$tool didn't remove the rules: see above"
		fi
	done
}
main
