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
runner() { # projects take pytest for granted; where no registry has it, the server's own must do
	$venv/bin/python -c 'import pytest' 2>/dev/null || pip install --quiet pytest ||
		sed -i 's/^include-system-site-packages = .*/include-system-site-packages = true/' $venv/pyvenv.cfg
}
if [ "${1-}" = names ]; then
	export PIP_ONLY_BINARY=:all:
	listed names
	status=$?
	runner
	exit $status
fi
locked() { # prints what the lock file says, as pip reads it, by the program that writes such files
	export PYTHONPATH=/deps/locker PIP_TARGET=/deps/locker PDM_USE_VENV=false PDM_CHECK_UPDATE=false
	case $1 in
	uv.lock) pip install --quiet uv || return
		export="/deps/locker/bin/uv export --quiet --frozen --no-emit-workspace"
		# Groups and extras may exclude one another; then the default ones.
		$export --all-extras --all-groups 2>/dev/null || $export --all-extras 2>/dev/null || $export ;;
	poetry.lock) pip install --quiet poetry-plugin-export && $venv/bin/python -m poetry export --without-urls --all-groups --all-extras ;;
	pdm.lock) pip install --quiet pdm && $venv/bin/python -m pdm export --format requirements --group :all && rm -f .pdm-python ;;
	Pipfile.lock) pip install --quiet pipenv && $venv/bin/python -m pipenv requirements --dev --hash ;;
	esac
}
status=0
lock=$(ls uv.lock poetry.lock pdm.lock Pipfile.lock 2>/dev/null | head -n 1)
if [ -n "$lock" ] && (locked $lock) >/deps/forge/locked.txt; then
	# Those with checksums at once, and one by one where one of them cannot be had; then the project.
	rm -rf /deps/forge/held /deps/forge/free
	cd /deps/forge && $venv/bin/python python.py locked <locked.txt && cd - >/dev/null
	pip install --quiet --no-deps -r /deps/forge/held.txt || {
		status=$?
		for one in /deps/forge/held/*; do pip install --quiet --no-deps -r $one 2>/dev/null; done
	}
	for one in /deps/forge/free/*; do [ ! -f $one ] || pip install --quiet --no-deps -r $one || status=$?; done
	listed project || status=$?
else
	listed || { # what it needs may be had although it cannot be built
		status=$?
		listed names
	}
	[ -z "$lock" ] || status=1 # which was not followed
fi
rm -rf /deps/locker
runner
exit $status
