#!/bin/bash
# check.sh: the checks of action.yml. What is checked is another's: nothing that it says
# becomes a command of the workflow or markup of the summary.
set -uo pipefail
: "${GITHUB_OUTPUT:?}" "${GITHUB_STEP_SUMMARY:?}" "${RUNNER_TEMP:?}" "${FILE:=workshop.yaml}" "${STRICT:=true}" "${COMPILE_CHECK:=true}"
for value in "$STRICT" "$COMPILE_CHECK"; do
	[[ $value = true || $value = false ]] || { echo "strict and compile-check are true or false, not \"$value\"" >&2; exit 2; }
done
strict=()
[ "$STRICT" = false ] || strict=(--strict)
sarif=$RUNNER_TEMP/workshop.sarif

# plain prints lines of which none is a workflow command.
plain() {
	local token
	token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
	echo "::stop-commands::$token"
	cat
	echo
	echo "::$token::"
}

# row adds a check to the summary, with its output where it failed.
row() { # NAME CODE OUTPUT
	echo
	if [ "$2" = 0 ]; then
		echo "- ✅ $1"
		return
	fi
	echo "- ❌ $1 (exit code $2)"
	echo
	echo '<pre>'
	head -c 60000 <<<"$3" | sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/>/\&gt;/g' -e 's/^$/ /'
	echo '</pre>'
}

failed=0
workshop --format github -f "$FILE" validate "${strict[@]}" 2>"$RUNNER_TEMP/said"
validate=$?
plain <"$RUNNER_TEMP/said"
workshop --format sarif -f "$FILE" validate "${strict[@]}" >"$sarif" 2>/dev/null
[ ! -s "$sarif" ] || echo "sarif=$sarif" >>"$GITHUB_OUTPUT"
text=$(workshop --no-color -f "$FILE" validate "${strict[@]}" 2>&1)
[ $validate = 0 ] || failed=1
{
	echo "### workshop"
	row "validate" $validate "$text"
} >>"$GITHUB_STEP_SUMMARY"
if [ "$COMPILE_CHECK" = true ]; then
	text=$(workshop --no-color -f "$FILE" compile --check 2>&1)
	compile=$?
	plain <<<"$text"
	[ $compile = 0 ] || failed=1
	row "compile --check" $compile "$text" >>"$GITHUB_STEP_SUMMARY"
fi
exit $failed
