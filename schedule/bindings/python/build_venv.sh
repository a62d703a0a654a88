#!/bin/sh
# Makes a virtual environment with this package and what its tests run with: build_venv.sh FOLDER.
# Exit codes: 0 made; 3 the packages cannot be had; 4 python3 -m venv does not work; 1 anything else.
set -eu
[ $# = 1 ] || { echo "expected a folder: build_venv.sh FOLDER" >&2; exit 1; }
mkdir -p "$1"
cd "$1"
out=$(pwd)
cd - >/dev/null
cd "$(dirname "$0")"
# Two runs at once with one folder come one after the other.
exec 9>"$out.lock"
flock 9
# The packages are fetched once.
if ! cmp -s requirements-test.txt "$out/made-from.txt"; then
	if [ ! -e "$out/pyvenv.cfg" ] && [ -n "$(ls -A "$out")" ]; then
		echo "$out: it is neither empty nor a virtual environment; expected a folder that may be deleted" >&2
		exit 1
	fi
	rm -rf "$out"
	python3 -m venv "$out" || exit 4
	"$out/bin/pip" install -q --disable-pip-version-check -r requirements-test.txt || exit 3
	cp requirements-test.txt "$out/made-from.txt"
fi
# This one is installed where it has changed: another run may be using what is there.
sources="pyproject.toml tailwright_gat.py tailwright_gat_context.py tailwright_gat_otel.py"
if ! cat $sources | cmp -s - "$out/installed.txt"; then
	rm -f "$out/installed.txt"
	copy=$(mktemp -d)
	trap 'rm -rf "$copy"' EXIT
	cp $sources "$copy"
	"$out/bin/pip" install -q --disable-pip-version-check --no-deps --no-build-isolation --no-index --force-reinstall "$copy"
	cat $sources >"$out/installed.txt"
fi
