#!/usr/bin/env bash
# Script of action.yml: installs Longwire for the following steps of a job.
#
# LONGWIRE_VERSION   version to install, such as 0.1.0, or `latest`
# LONGWIRE_RELEASES  URL of the releases, which tests override
set -euo pipefail

fail() {
    echo "::error title=longwire::$*"
    exit 1
}

version=${LONGWIRE_VERSION:-latest}
version=${version#v}
project=https://github.com/longwire/longwire
case "$(uname -s) $(uname -m)" in
"Linux x86_64") machine=x86_64 ;;
"Linux aarch64") machine=aarch64 ;;
*) fail "Longwire runs on Linux on x86_64 and aarch64, not on $(uname -s) on $(uname -m)" ;;
esac

fetch() { curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"; }

if [ "$version" = latest ]; then
    # The page of the latest release redirects to that of its version.
    page=$(curl --fail --silent --show-error --location --retry 3 --output /dev/null \
        --write-out '%{url_effective}' "$project/releases/latest") ||
        fail "cannot find the latest release; set a version, such as with: {version: 0.1.0}"
    version=${page##*/v}
fi
releases=${LONGWIRE_RELEASES:-$project/releases/download/v$version}
name=longwire-$version-$machine-linux-gnu
folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/longwire.XXXXXX")
cd "$folder"
fetch "$releases/$name.tar.gz" "$name.tar.gz" ||
    fail "cannot download release $version for $machine; check the version"
fetch "$releases/SHA256SUMS" SHA256SUMS || fail "cannot download SHA256SUMS of release $version"
grep "  $name.tar.gz\$" SHA256SUMS >own || fail "SHA256SUMS does not name $name.tar.gz"
sha256sum --check --strict --quiet own ||
    fail "the checksum of $name.tar.gz does not match SHA256SUMS"
tar --extract --gzip --file "$name.tar.gz"

# Ubuntu 24.04 denies privileges in user namespaces of ordinary users, which `exec` needs.
lock=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if [ -e "$lock" ] && [ "$(cat "$lock")" = 1 ] && [ -n "${GITHUB_ACTIONS:-}" ]; then
    sudo --non-interactive sysctl --quiet --write kernel.apparmor_restrict_unprivileged_userns=0 ||
        echo "::warning title=longwire::cannot allow user namespaces; run longwire with sudo"
fi

program=$folder/$name/bin/longwire
"$program" --version
dirname "$program" >>"$GITHUB_PATH"
echo "version=$version" >>"$GITHUB_OUTPUT"
# Log the properties of this runner that reduce accuracy.
"$program" doctor || true
