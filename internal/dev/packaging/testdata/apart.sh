#!/bin/bash
# apart.sh SCRIPT DIST: runs a script of this directory as root, with everything that it
# changes in a file system of its own: a layer over this machine's, in memory. It is
# started in mount and pid namespaces of its own (TestDist). The script finds DIST at
# /dist, and itself in /try.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
layer=$(mktemp -d)
trap 'umount -l "$layer"; rmdir "$layer"' EXIT
mount -t tmpfs -o size=1g tmpfs "$layer"
mkdir "$layer"/{upper,work,root}
mount -t overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" overlay "$layer/root"
root=$layer/root
mkdir "$root"/{try,dist,old} "$root"/home/admin
mount --bind "$here" "$root/try"
mount --bind "$2" "$root/dist"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
mkdir "$root/run/layer"
mount --bind "$layer/upper" "$root/run/layer"
# A process in a chroot can't make user namespaces.
cd "$root"
pivot_root . old
umount -l /old
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/admin TERM=dumb "/try/$1"
