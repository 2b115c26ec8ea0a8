set -eu
chains="@CHAINS@"
used="@USED@" # those of the chains that have rules

rules() {
	case $1 in
	iptables) cat <<'RULES'
@RULES4@RULES
		;;
	ip6tables) cat <<'RULES'
@RULES6@RULES
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
		from=${jump%=*} chain=@PREFIX@${jump#*=} wanted=
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

there() { "$1" -w -S 2>/dev/null | grep -q '^-N @PREFIX@'; }

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
