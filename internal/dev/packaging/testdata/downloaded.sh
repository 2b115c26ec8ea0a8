#!/bin/bash
# The archive: unpacked by an ordinary user, without the source, and by root.
. /try/common.sh
cd /home/somebody
as_user tar -xzf /dist/workshop_*_linux_*.tar.gz
dir=$(echo /home/somebody/workshop_*)
[ "$(as_user "$dir/workshop" --version)" = "workshop v0.1.2" ]
as_user "$dir/llmdo" --version | grep >/dev/null 'v0.1.2'
{ as_user "$dir/workshop" doctor -v || true; } | grep >/dev/null 'is embedded, and there is one for linux/'
works as_user "$dir/workshop"
works env "$dir/workshop"
works as_user "$dir/llmdo" workshop
