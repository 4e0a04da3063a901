# Makes a virtual environment for a Python project and its tests. With "names", packages
# alone are installed, as wheels, and nothing of the project is run.
set -u
venv=/deps/venv
if [ ! -x $venv/bin/python ] && ! python3 -m venv $venv >/dev/null 2>&1; then # Debian has a package of its own for what is missing
	rm -rf $venv
	python3 -m venv --without-pip $venv && python3 -m pip --python $venv/bin/python install --quiet pip || exit
fi
pip() { $venv/bin/python -m pip "$@"; }
listed() { # installs what python.py prints
	$venv/bin/python /deps/forge/python.py "$@" >/deps/forge/arguments || return
	set --
	while IFS= read -r argument; do [ -z "$argument" ] || set -- "$@" "$argument"; done </deps/forge/arguments
	[ $# = 0 ] || pip install --quiet "$@"
}
if [ "${1-}" = names ]; then
	PIP_ONLY_BINARY=:all: listed names
	exit
fi
status=0
if [ -f uv.lock ]; then
	pip install --quiet uv &&
		$venv/bin/uv export --quiet --frozen --no-hashes --all-extras --all-groups >/deps/forge/locked.txt &&
		pip install --quiet -r /deps/forge/locked.txt
	status=$?
fi
if [ ! -f uv.lock ] || [ $status != 0 ]; then
	listed
	status=$?
fi
if [ $status != 0 ]; then # what it needs may be had although it cannot be built
	listed names
fi
# Projects take pytest for granted. Where no registry has it, the server's own must do.
$venv/bin/python -c 'import pytest' 2>/dev/null || pip install --quiet pytest ||
	sed -i 's/^include-system-site-packages = .*/include-system-site-packages = true/' $venv/pyvenv.cfg
exit $status
