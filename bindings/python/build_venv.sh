#!/bin/sh
# Makes a virtual environment with this package and what its tests run with: build_venv.sh FOLDER.
# Exit codes: 0 made; 3 the packages cannot be had; 1 anything else.
set -eu
[ $# = 1 ] || { echo "expected a folder: build_venv.sh FOLDER" >&2; exit 1; }
cd "$(dirname "$0")"
# The packages are fetched once; this one is installed each time.
if ! cmp -s requirements-test.txt "$1/made-from.txt"; then
	rm -rf "$1"
	python3 -m venv "$1" || exit 3
	"$1/bin/pip" install -q --disable-pip-version-check -r requirements-test.txt || exit 3
	cp requirements-test.txt "$1/made-from.txt"
fi
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp pyproject.toml tailwright_gat.py tailwright_gat_context.py tailwright_gat_otel.py "$copy"
"$1/bin/pip" install -q --disable-pip-version-check --no-deps --no-build-isolation --no-index --force-reinstall "$copy"
