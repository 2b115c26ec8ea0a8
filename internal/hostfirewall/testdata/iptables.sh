#!/bin/sh
# Host rules for the workshops that are up. To apply them:
#     workshop firewall export --for iptables | sudo sh
# Export and apply again after each workshop up or down, and after a change of allow lines
# or of ports: the rules are about what was up. They only refuse, and accept nothing that
# another rule of this machine refuses.
# - project shop: on br-0123456789ab only its guard (10.213.1.2, 2001:db8:9::2) leaves: to
#   public addresses over TCP, to the resolvers and to the ranges that its lines name. No
#   connection comes in there from elsewhere, but to ports that its file publishes beyond
#   loopback.
# - project docs: programs of user 65532 leave to public addresses over TCP, to the
#   resolvers and to the ranges that lines name.
# - projects site, wiki: programs of control group /user.slice/workshop leave to public
#   addresses over TCP, to the resolvers and to the ranges that lines name.
# - published ports take connections from loopback alone.
# - not held: guards of project blog: they have the user and the control group of other
#   programs
set -eu
chains="WORKSHOP-1000-FORWARD WORKSHOP-1000-INPUT WORKSHOP-1000-OUTPUT WORKSHOP-1000-NEVER WORKSHOP-1000-PRIVATE"
used="WORKSHOP-1000-FORWARD WORKSHOP-1000-INPUT WORKSHOP-1000-OUTPUT WORKSHOP-1000-NEVER WORKSHOP-1000-PRIVATE" # those of the chains that have rules

rules() {
	case $1 in
	iptables) cat <<'RULES'
-A WORKSHOP-1000-FORWARD -i br-0123456789ab ! -s 10.213.1.2 -m comment --comment "project shop: only its guard leaves" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment "project shop: answers" -j RETURN
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -d 198.51.100.53/32 -p tcp --dport 53 -m comment --comment "a resolver of project shop" -j RETURN
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -d 198.51.100.53/32 -p udp --dport 53 -m comment --comment "a resolver of project shop" -j RETURN
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -m comment --comment "project shop: never" -j WORKSHOP-1000-NEVER
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -d 10.20.0.0/16 -p tcp --dport 5432:5433 -m comment --comment "project shop, workshop.yaml:12: 10.20.0.0/16" -j RETURN
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -d 10.20.0.0/16 -p tcp --dport 6000 -m comment --comment "project shop, workshop.yaml:12: 10.20.0.0/16" -j RETURN
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -m comment --comment "project shop: private ranges" -j WORKSHOP-1000-PRIVATE
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -p tcp -m comment --comment "project shop: public addresses" -j RETURN
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -m comment --comment "project shop: TCP alone" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-FORWARD -o br-0123456789ab -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment "project shop: answers" -j RETURN
-A WORKSHOP-1000-FORWARD -o br-0123456789ab -d 10.213.1.2/32 -p tcp --dport 20001 -m comment --comment "project shop, workshop.yaml:20: 0.0.0.0:8081" -j RETURN
-A WORKSHOP-1000-FORWARD -o br-0123456789ab -m comment --comment "project shop: nothing comes in" -j DROP
-A WORKSHOP-1000-INPUT -i br-0123456789ab ! -s 10.213.1.2 -m comment --comment "project shop: only its guard leaves" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-INPUT -i br-0123456789ab -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment "project shop: answers" -j RETURN
-A WORKSHOP-1000-INPUT -i br-0123456789ab -d 198.51.100.53/32 -p tcp --dport 53 -m comment --comment "a resolver of project shop" -j RETURN
-A WORKSHOP-1000-INPUT -i br-0123456789ab -d 198.51.100.53/32 -p udp --dport 53 -m comment --comment "a resolver of project shop" -j RETURN
-A WORKSHOP-1000-INPUT -i br-0123456789ab -m comment --comment "project shop: never" -j WORKSHOP-1000-NEVER
-A WORKSHOP-1000-INPUT -i br-0123456789ab -d 10.20.0.0/16 -p tcp --dport 5432:5433 -m comment --comment "project shop, workshop.yaml:12: 10.20.0.0/16" -j RETURN
-A WORKSHOP-1000-INPUT -i br-0123456789ab -d 10.20.0.0/16 -p tcp --dport 6000 -m comment --comment "project shop, workshop.yaml:12: 10.20.0.0/16" -j RETURN
-A WORKSHOP-1000-INPUT -i br-0123456789ab -m comment --comment "project shop: not this machine" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-INPUT -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment "answers" -j RETURN
-A WORKSHOP-1000-INPUT ! -i lo -p tcp --dport 8080 -m comment --comment "project shop, workshop.yaml:19: 127.0.0.1:8080: from loopback alone" -j DROP
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment "project docs: answers" -j RETURN
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -m comment --comment "project docs: never" -j WORKSHOP-1000-NEVER
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -m addrtype --dst-type LOCAL -m comment --comment "project docs: not this machine" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -d 10.30.0.0/16 -p tcp --dport 22 -m comment --comment "project docs, workshop.yaml:9: 10.30.0.0/16" -j RETURN
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -m comment --comment "project docs: private ranges" -j WORKSHOP-1000-PRIVATE
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -p tcp -m comment --comment "project docs: public addresses" -j RETURN
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -m comment --comment "project docs: TCP alone" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment "projects site, wiki: answers" -j RETURN
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -d 198.51.100.53/32 -p tcp --dport 53 -m comment --comment "a resolver of project shop" -j RETURN
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -d 198.51.100.53/32 -p udp --dport 53 -m comment --comment "a resolver of project shop" -j RETURN
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -m comment --comment "projects site, wiki: never" -j WORKSHOP-1000-NEVER
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -m addrtype --dst-type LOCAL -m comment --comment "projects site, wiki: not this machine" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -m comment --comment "projects site, wiki: private ranges" -j WORKSHOP-1000-PRIVATE
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -p tcp -m comment --comment "projects site, wiki: public addresses" -j RETURN
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -m comment --comment "projects site, wiki: TCP alone" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 169.254.169.254/32 -m comment --comment "metadata" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 169.254.170.2/32 -m comment --comment "metadata" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 169.254.170.23/32 -m comment --comment "metadata" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 100.100.100.200/32 -m comment --comment "metadata" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 168.63.129.16/32 -m comment --comment "metadata" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 192.0.0.192/32 -m comment --comment "metadata" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 0.0.0.0/8 -m comment --comment "unspecified" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 127.0.0.0/8 -m comment --comment "loopback" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 169.254.0.0/16 -m comment --comment "link-local" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 192.0.0.0/24 -m comment --comment "reserved" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 192.88.99.0/24 -m comment --comment "translated" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 224.0.0.0/4 -m comment --comment "multicast" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-NEVER -d 240.0.0.0/4 -m comment --comment "reserved" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-PRIVATE -d 10.0.0.0/8 -m comment --comment "private" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-PRIVATE -d 100.64.0.0/10 -m comment --comment "shared" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-PRIVATE -d 172.16.0.0/12 -m comment --comment "private" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-PRIVATE -d 192.168.0.0/16 -m comment --comment "private" -j REJECT --reject-with icmp-admin-prohibited
-A WORKSHOP-1000-PRIVATE -d 198.18.0.0/15 -m comment --comment "benchmark" -j REJECT --reject-with icmp-admin-prohibited
RULES
		;;
	ip6tables) cat <<'RULES'
-A WORKSHOP-1000-FORWARD -i br-0123456789ab ! -s 2001:db8:9::2 -m comment --comment "project shop: only its guard leaves" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment "project shop: answers" -j RETURN
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -m comment --comment "project shop: never" -j WORKSHOP-1000-NEVER
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -d fd12::/16 -p tcp --dport 443 -m comment --comment "project shop, workshop.yaml:13: fd12::/16" -j RETURN
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -m comment --comment "project shop: private ranges" -j WORKSHOP-1000-PRIVATE
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -p tcp -m comment --comment "project shop: public addresses" -j RETURN
-A WORKSHOP-1000-FORWARD -i br-0123456789ab -m comment --comment "project shop: TCP alone" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-FORWARD -o br-0123456789ab -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment "project shop: answers" -j RETURN
-A WORKSHOP-1000-FORWARD -o br-0123456789ab -d 2001:db8:9::2/128 -p tcp --dport 20001 -m comment --comment "project shop, workshop.yaml:20: 0.0.0.0:8081" -j RETURN
-A WORKSHOP-1000-FORWARD -o br-0123456789ab -m comment --comment "project shop: nothing comes in" -j DROP
-A WORKSHOP-1000-INPUT -i br-0123456789ab -p icmpv6 --icmpv6-type neighbour-solicitation -m comment --comment "project shop: neighbours" -j RETURN
-A WORKSHOP-1000-INPUT -i br-0123456789ab -p icmpv6 --icmpv6-type neighbour-advertisement -m comment --comment "project shop: neighbours" -j RETURN
-A WORKSHOP-1000-INPUT -i br-0123456789ab ! -s 2001:db8:9::2 -m comment --comment "project shop: only its guard leaves" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-INPUT -i br-0123456789ab -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment "project shop: answers" -j RETURN
-A WORKSHOP-1000-INPUT -i br-0123456789ab -m comment --comment "project shop: never" -j WORKSHOP-1000-NEVER
-A WORKSHOP-1000-INPUT -i br-0123456789ab -d fd12::/16 -p tcp --dport 443 -m comment --comment "project shop, workshop.yaml:13: fd12::/16" -j RETURN
-A WORKSHOP-1000-INPUT -i br-0123456789ab -m comment --comment "project shop: not this machine" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-INPUT -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment "answers" -j RETURN
-A WORKSHOP-1000-INPUT ! -i lo -p tcp --dport 8080 -m comment --comment "project shop, workshop.yaml:19: 127.0.0.1:8080: from loopback alone" -j DROP
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment "project docs: answers" -j RETURN
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -m comment --comment "project docs: never" -j WORKSHOP-1000-NEVER
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -m addrtype --dst-type LOCAL -m comment --comment "project docs: not this machine" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -m comment --comment "project docs: private ranges" -j WORKSHOP-1000-PRIVATE
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -p tcp -m comment --comment "project docs: public addresses" -j RETURN
-A WORKSHOP-1000-OUTPUT -m owner --uid-owner 65532 -m comment --comment "project docs: TCP alone" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment "projects site, wiki: answers" -j RETURN
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -m comment --comment "projects site, wiki: never" -j WORKSHOP-1000-NEVER
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -m addrtype --dst-type LOCAL -m comment --comment "projects site, wiki: not this machine" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -m comment --comment "projects site, wiki: private ranges" -j WORKSHOP-1000-PRIVATE
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -p tcp -m comment --comment "projects site, wiki: public addresses" -j RETURN
-A WORKSHOP-1000-OUTPUT -m cgroup --path "/user.slice/workshop" -m comment --comment "projects site, wiki: TCP alone" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d fd00:ec2::/32 -m comment --comment "metadata" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d fd20:ce::254/128 -m comment --comment "metadata" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d fd00:42::42/128 -m comment --comment "metadata" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d fd00:a9fe:a9fe::1/128 -m comment --comment "metadata" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d fd00:c1::a9fe:a9fe/128 -m comment --comment "metadata" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d fd00:100::100:200/128 -m comment --comment "metadata" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d ::/128 -m comment --comment "unspecified" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d ::1/128 -m comment --comment "loopback" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d ::/96 -m comment --comment "translated" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d ::ffff:0:0:0/96 -m comment --comment "translated" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d 64:ff9b::/96 -m comment --comment "translated" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d 64:ff9b:1::/48 -m comment --comment "translated" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d 100::/64 -m comment --comment "reserved" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d 2001::/32 -m comment --comment "translated" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d 2002::/16 -m comment --comment "translated" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d 5f00::/16 -m comment --comment "reserved" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d fe80::/10 -m comment --comment "link-local" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d fec0::/10 -m comment --comment "link-local" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-NEVER -d ff00::/8 -m comment --comment "multicast" -j REJECT --reject-with icmp6-adm-prohibited
-A WORKSHOP-1000-PRIVATE -d fc00::/7 -m comment --comment "private" -j REJECT --reject-with icmp6-adm-prohibited
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
	# Tried first in an empty network namespace: what the kernel lacks is found out there.
	if unshare --net true 2>/dev/null; then
		for tool in $tools; do
			transaction "$tool" empty | unshare --net "$tool-restore" --noflush ||
				fail "this machine can't load the rules by $tool: see above for the match or target that its kernel or its iptables lacks; nothing was changed"
		done
	fi
	before= loaded=
	for tool in $tools; do
		if there "$tool"; then before=$tool; fi
	done
	for tool in $tools; do
		if load "$tool"; then
			loaded="$loaded $tool"
			continue
		fi
		[ -z "$before" ] || fail "$tool didn't load the rules; it has those of before${loaded:+, and$loaded has these}. Remove all with: workshop firewall export --for iptables --remove | sudo sh"
		used=
		rules() { :; }
		for tool in $loaded; do load "$tool"; done
		fail "the rules can't be loaded: see above for what the kernel or iptables lacks; nothing is left of them"
	done
}
main
