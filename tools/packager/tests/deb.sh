#!/bin/sh
# Enters a Debian system in a directory, in namespaces that end with this script.
# Arguments: the directory, the package, the script to run there, the version.
set -eu
root=$1 package=$2 inside=$3 version=$4
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
ip link set lo up
cp "$package" "$root/run/longwire.deb"
cp "$inside" "$root/run/inside.sh"
cd "$root"
# Not chroot: the kernel does not allow user namespaces in a chroot.
pivot_root . mnt
exec chroot . /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
    sh /run/inside.sh "$version"
