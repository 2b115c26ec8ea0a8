# What both scripts share.
set -euo pipefail
set -x
exec 2>&1

# as_user COMMAND...: as an ordinary user with a home of their own.
as_user() {
	setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps=-all -- env -i PATH="$PATH" HOME=/home/somebody TERM=dumb "$@"
}
mkdir -p /home/somebody/hello
cat >/home/somebody/hello/workshop.yaml <<-'END'
	workshop:
	  name: hello
	  container: {image: host, network: none}
	  workers: [helper]
END
mkdir /home/somebody/hello/workers
printf -- '---\nname: helper\ndescription: Helps\nallowed-tools: Read, Bash\n---\nHelp.\n' >/home/somebody/hello/workers/helper.md
chown -R 1000:1000 /home/somebody

# works AS PROGRAM...: a workshop comes up and works, in namespaces.
works() {
	local as=$1
	shift
	cd /home/somebody/hello
	$as "$@" validate
	$as "$@" up --engine namespace --without-limits
	[ "$($as "$@" exec helper -- sh -c 'echo inside')" = inside ]
	$as "$@" ps | grep >/dev/null 'helper.*up'
	$as "$@" down
	cd /
}
