#!/bin/bash
# The Debian package: installed, used by root and by an ordinary user, purged.
. /try/common.sh
export DEBIAN_FRONTEND=noninteractive

# changed lists what the layer has, but for what dpkg, man and the user keep.
changed() {
	find /run/layer -mindepth 1 ! -path '/run/layer/home*' ! -path '/run/layer/var/*' ! -name 'ld.so.cache*' | sort
}
changed >/tmp/before
dpkg -i /dist/*.deb
[ "$(workshop --version)" = "workshop v0.1.2" ]
as_user workshop --version
{ as_user workshop doctor -v || true; } | grep >/dev/null 'is embedded, and there is one for linux/'
works as_user workshop
works env workshop
cmp /usr/libexec/workshop/workshop-init /home/admin/.cache/workshop/init/*/workshop-init

# Manual pages.
for page in workshop workshop-up workshop-firewall-allow; do
	MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l "/usr/share/man/man1/$page.1.gz" 2>/tmp/warnings >/tmp/page
	[ ! -s /tmp/warnings ] || { cat /tmp/warnings; exit 1; }
	grep >/dev/null SYNOPSIS /tmp/page
done

# Completion, as the shells load it.
complete_bash='. /usr/share/bash-completion/bash_completion; __load_completion workshop
	complete -p workshop; COMP_WORDS=(workshop va); COMP_CWORD=1; COMP_LINE="workshop va"; COMP_POINT=11; __start_workshop; echo "${COMPREPLY[@]}"'
as_user bash -c "$complete_bash" | grep >/dev/null validate
as_user zsh -c 'autoload -Uz compinit && compinit -u -d /tmp/zdump && echo ${_comps[workshop]} && autoload +X _workshop && whence -w _workshop' | grep >/dev/null '_workshop'

# The plugin of the docker command.
as_user docker workshop --version | grep >/dev/null 'v0.1.2'
(cd /home/somebody/hello && as_user docker workshop ps --engine namespace 2>&1) | grep >/dev/null 'hello'

# An upgrade to itself, then purge: nothing of the package is left.
dpkg -i /dist/*.deb
dpkg --purge workshop
if command -v workshop; then exit 1; fi
# A directory that is there again is one of this machine's.
changed | while read -r name; do
	[ -d "$name" ] && [ -d "${name#/run/layer}" ] && dpkg -S "${name#/run/layer}" >/dev/null 2>&1 || echo "$name"
done >/tmp/after
diff /tmp/before /tmp/after
