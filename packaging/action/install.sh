#!/bin/bash
# install.sh: puts workshop on the PATH of later steps (action.yml). A release is
# downloaded, and has to have the hash of its SHA256SUMS; else the source of the action
# is built.
set -euo pipefail
: "${GITHUB_ACTION_PATH:?}" "${GITHUB_PATH:?}" "${RUNNER_TEMP:?}"
bin=$RUNNER_TEMP/workshop-bin
mkdir -p "$bin"
version=${WANTED:-}
if [ -z "$version" ] && [[ ${REF:-} =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]]; then
	version=$REF
fi
if [ -n "$version" ]; then
	[[ $version =~ ^v[0-9]+(\.[0-9]+){2}(-[0-9A-Za-z.-]+)?$ ]] || { echo "version: \"$version\" is not a version such as v1.2.3" >&2; exit 2; }
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) echo "no archive for $(uname -s): use a Linux or macOS runner" >&2; exit 2 ;;
	esac
	case $(uname -m) in
	x86_64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) echo "no archive for $(uname -m)" >&2; exit 2 ;;
	esac
	name=workshop_${version#v}_${os}_$arch
	from=${RELEASES:-https://github.com/${REPOSITORY:-llmdo/workshop}/releases/download}/$version
	cd "$RUNNER_TEMP"
	for file in "$name.tar.gz" SHA256SUMS; do
		curl -fsSL --retry 3 -o "$file" "$from/$file"
	done
	sums=$(grep -E "^[0-9a-f]{64}  $name\.tar\.gz$" SHA256SUMS) || { echo "SHA256SUMS of $version lacks $name.tar.gz" >&2; exit 1; }
	if command -v sha256sum >/dev/null; then
		sha256sum --check --quiet <<<"$sums"
	else
		shasum -a 256 --check --quiet <<<"$sums"
	fi
	tar -xzf "$name.tar.gz" -C "$bin" --strip-components=1 "$name/workshop"
else
	command -v go >/dev/null || { echo "this action is not at a release, and there is no Go to build it: add actions/setup-go, or say version: vX.Y.Z" >&2; exit 1; }
	cd "$GITHUB_ACTION_PATH"
	CGO_ENABLED=0 GOWORK=off GOFLAGS= go build -trimpath -buildvcs=false -tags=validator_novalidatefn,nethttpomithttp2 -o "$bin/workshop" ./cmd/workshop
fi
echo "$bin" >>"$GITHUB_PATH"
"$bin/workshop" --version
