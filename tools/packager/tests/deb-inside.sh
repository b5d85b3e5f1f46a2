#!/bin/sh
# Installs the package, uses it as root and as an ordinary user, and removes it.
set -eu
version=$1
umount --lazy /mnt
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
# Lists every file and directory, except for the package manager's records.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp \
        -o -path /var/lib/dpkg -o -path /var/log -o -path /var/cache \) -prune -o -print | sort
}
files >/run/before

grep PRETTY_NAME /etc/os-release
dpkg --install /run/longwire.deb
test "$(longwire --version)" = "longwire $version" || fail "longwire --version is not $version"
test "$(command -v longwire)" = /usr/bin/longwire || fail "longwire in PATH is not /usr/bin/longwire"
dpkg --verify longwire
dpkg --listfiles longwire | while read -r path; do
    test -e "$path" || fail "$path is missing"
done
test -s /usr/include/longwire_plugin.h || fail "the plugin header is missing"
gzip --test /usr/share/man/man1/longwire*.1.gz

# An RTT includes the delay of both directions.
round_trip() {
    "$@" longwire exec --delay 20ms -- ping -c 1 far >/run/ping 2>/run/notes || {
        cat /run/ping /run/notes
        fail "exec as: $*"
    }
    sed -n 's/.*time=\([0-9.]*\) ms/\1/p' /run/ping | {
        read -r time || fail "no round trip as: $*"
        echo "  round trip as '$*': $time ms"
        test "${time%.*}" -ge 40 || fail "the round trip is shorter than both delays"
    }
}
round_trip env
round_trip setpriv --reuid 1000 --regid 1000 --clear-groups

mkdir -m 1777 /run/work
cd /run/work
user="setpriv --reuid 1000 --regid 1000 --clear-groups"
$user longwire generate --to pcap:in.pcap --rate 1kpps --count 300 >/dev/null 2>&1
$user longwire simulate in.pcap out.pcap --rate 10mbit --delay 20ms --seed 7 2>/run/notes ||
    fail "simulate: $(cat /run/notes)"
test "$(stat -c %s out.pcap)" = "$(stat -c %s in.pcap)" || fail "simulate lost frames"

dpkg --remove longwire
dpkg --purge longwire 2>/dev/null
files >/run/after
diff /run/before /run/after || fail "left behind"
test ! -e /run/longwire || fail "/run/longwire is left behind"
# Do not read /sys, which shows the devices of the outer network namespace.
devices=$(sed -n 's/^ *\([^ :]*\):.*/\1/p' /proc/net/dev | grep -v -x lo || true)
test -z "$devices" || fail "devices are left behind: $devices"
echo "  nothing is left behind"
