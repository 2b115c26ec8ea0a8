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
