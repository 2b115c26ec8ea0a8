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
