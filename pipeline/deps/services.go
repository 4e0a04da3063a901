package deps

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline/text"
	"forge/pipeline/untrusted"
)

// service is a program that listens beside the tests, from what the server has.
type service struct {
	images  []string // whose names end so
	tool    string   // as [ToolScript] names it
	install string
	port    int    // its default
	prepare string // for a shell, once; AT is its directory, PORT its port, and the variables of the image are there
	start   string // before each command
}

// services are those that Forge starts. They end with the command that they were started for; their data
// stays for the next command, and need not survive a crash of the machine.
var services = map[string]service{
	"postgres": {
		images: []string{"postgres", "postgresql", "postgis"}, tool: "postgres", install: "apt-get install postgresql", port: 5432,
		prepare: pgBin + `initdb -D "$AT" -U "${POSTGRES_USER:-postgres}" --auth=trust -E UTF8 --locale=C.UTF-8 >/dev/null
` + pgStart + `
db=${POSTGRES_DB:-${POSTGRES_USER:-postgres}}
[ "$db" = postgres ] || createdb -h 127.0.0.1 -p "$PORT" -U "${POSTGRES_USER:-postgres}" "$db"
pg_ctl -D "$AT" -w stop >/dev/null`,
		start: pgBin + pgStart,
	},
	"mysql": {
		images: []string{"mysql", "mariadb"}, tool: "mysqld", install: "apt-get install mariadb-server", port: 3306,
		prepare: `PATH=$PATH:/usr/sbin q=$(printf '\140')
if command -v mariadb-install-db >/dev/null; then mariadb-install-db --no-defaults --datadir="$AT" --skip-test-db >/dev/null
else mysqld --no-defaults --initialize-insecure --datadir="$AT"; fi
pw=${MYSQL_ROOT_PASSWORD:-$MARIADB_ROOT_PASSWORD} db=${MYSQL_DATABASE:-$MARIADB_DATABASE} user=${MYSQL_USER:-$MARIADB_USER} own=${MYSQL_PASSWORD:-$MARIADB_PASSWORD}
{ for name in "root $pw" ${user:+"$user $own"}; do
	at="'${name%% *}'@'localhost'"
	echo "CREATE USER IF NOT EXISTS $at;
ALTER USER $at IDENTIFIED BY '${name#* }';
GRANT ALL ON *.* TO $at WITH GRANT OPTION;"
done
[ -z "$db" ] || echo "CREATE DATABASE IF NOT EXISTS $q$db$q;"; } >"$AT.sql"`,
		start: `PATH=$PATH:/usr/sbin
"$(command -v mariadbd || command -v mysqld)" --no-defaults --skip-name-resolve=0 --datadir="$AT" --port="$PORT" --bind-address=127.0.0.1 --socket=/tmp/mysql.sock --pid-file=/tmp/mysql.pid --init-file="$AT.sql" --innodb-flush-log-at-trx-commit=0 >"$LOG" 2>&1 &
answers "$PORT"`,
	},
	"redis": {
		images: []string{"redis", "valkey"}, tool: "redis-server", install: "apt-get install redis-server", port: 6379,
		prepare: `mkdir -p "$AT"`,
		start:   `redis-server --port "$PORT" --bind 127.0.0.1 --save '' --dir "$AT" >"$LOG" 2>&1 & answers "$PORT"`,
	},
	"memcached": {
		images: []string{"memcached"}, tool: "memcached", install: "apt-get install memcached", port: 11211,
		prepare: `mkdir -p "$AT"`,
		start:   `memcached -l 127.0.0.1 -p "$PORT" >"$LOG" 2>&1 & answers "$PORT"`,
	},
}

const (
	pgBin   = "PATH=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1):$PATH\n"
	pgStart = `chmod 700 "$AT"; rm -f "$AT/postmaster.pid"
pg_ctl -D "$AT" -w -t 60 -l "$LOG" -o "-p $PORT -c listen_addresses=127.0.0.1 -c unix_socket_directories=/tmp -c fsync=off -c full_page_writes=off" start >/dev/null`
)

// startHead begins the script before each command. What does not start is told, and the command runs all the same.
const startHead = `answers() { for i in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return; sleep 0.1; done; return 1; }
fails() { echo "$1, which CI runs beside the tests, did not start: $(tail -n 3 "$LOG" 2>/dev/null)" >&2; }
`

// declared is a service as a workflow or a compose file declares it.
type declared struct {
	Image       string
	Env         any // a map, or a list of KEY=value
	Environment any
	Ports       []any
}

// services finds the services that run beside the tests in CI, or else those of a compose file, and
// the variables by which the tests find them.
func (f *finder) services() (out []*Project) {
	for _, name := range f.files {
		if !isWorkflow(name) {
			continue
		}
		var workflow struct {
			On   any `yaml:"on"`
			Env  map[string]any
			Jobs map[string]struct {
				Env      map[string]any
				Services map[string]declared
				Steps    []struct{ Env map[string]any }
			}
		}
		if untrusted.YAML(f.text[name], &workflow) != nil || !strings.Contains(fmt.Sprint(workflow.On), "pull_request") && !strings.Contains(fmt.Sprint(workflow.On), "push") {
			continue
		}
		for _, job := range sorted(workflow.Jobs) {
			all := []map[string]any{workflow.Env, workflow.Jobs[job].Env}
			for _, step := range workflow.Jobs[job].Steps {
				all = append(all, step.Env)
			}
			out = f.addServices(out, name, workflow.Jobs[job].Services, all)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, name := range f.files {
		if isCompose(name) {
			var compose struct{ Services map[string]declared }
			if untrusted.YAML(f.text[name], &compose) == nil {
				out = f.addServices(out, name, compose.Services, nil)
			}
		}
	}
	return out
}

// addServices adds those that are not there yet, and the variables by which the job finds them.
func (f *finder) addServices(out []*Project, from string, all map[string]declared, variables []map[string]any) []*Project {
	var found []string // what variables may say of a service, and what it is here
	added := len(out)
	for _, label := range sorted(all) {
		kind := kindOf(label, all[label].Image)
		s, known := services[kind]
		if kind == "" || !known && isCompose(from) {
			continue
		}
		port := s.portOf(all[label].Ports)
		for _, quoted := range []string{fmt.Sprintf("[%d]", s.port), fmt.Sprintf("['%d']", s.port)} {
			found = append(found, "${{ job.services."+label+".ports"+quoted+" }}", port)
		}
		found = append(found, "@"+label+":", "@localhost:", "//"+label+":", "//localhost:", "@"+label+"/", "@localhost/") // a job in a container finds it by name
		if len(out) == 10 || slices.ContainsFunc(out, func(p *Project) bool { return p.Manager == "the service "+kind }) {
			continue
		}
		p := &Project{Manager: "the service " + kind, Dir: ".", From: from, Inputs: []string{from}}
		at := fmt.Sprintf("AT=%s/services/%s PORT=%s LOG=/tmp/%[2]s.log\n", env, kind, port)
		p.steps = []string{"set -e\n" + exports(asMap(cmp.Or(all[label].Env, all[label].Environment))) + "mkdir -p " + env + "/services\n" + at + s.prepare}
		p.start = at + "( " + s.start + "\n) || fails " + kind + "\n"
		if !known {
			p.Lacks = fmt.Sprintf("%s runs it beside the tests; Forge starts %s, if the server has them: what needs another fails or is skipped, unless tests.commands start it",
				from, strings.Join(sorted(services), ", "))
		} else if f.host.Tools[s.tool] == "" {
			p.Lacks = fmt.Sprintf("%s runs it beside the tests, and it is not on the server: %s", from, s.install)
		}
		out = append(out, p)
	}
	if len(out) == added {
		return out
	}
	here := strings.NewReplacer(found...)
	for _, vars := range variables {
		for _, key := range sortedKeys(vars) {
			value := here.Replace(fmt.Sprint(vars[key]))
			if _, ok := all[value]; ok {
				value = "localhost"
			}
			if !isSearchPath(key) && !strings.Contains(value, "${{") {
				out[added].use = append(out[added].use, key+"="+value)
			}
		}
	}
	return out
}

// kindOf is which service an image is of, or the image's own name.
func kindOf(label, image string) string {
	image, _, _ = strings.Cut(path.Base(image), ":")
	if strings.HasPrefix(image, "$") { // a matrix names it
		image = label
	}
	for name, s := range services {
		if slices.Contains(s.images, image) {
			return name
		}
	}
	return text.Clip(image, 40)
}

// portOf is where tests find a service.
func (s service) portOf(ports []any) string {
	own := strconv.Itoa(s.port)
	for _, p := range ports {
		outside, inside, two := strings.Cut(strings.TrimSuffix(fmt.Sprint(p), "/tcp"), ":")
		if _, err := strconv.ParseUint(outside, 10, 16); two && inside == own && err == nil {
			return outside
		}
	}
	return own
}

// isSearchPath reports whether a variable says where programs and libraries are: here they are elsewhere.
func isSearchPath(key string) bool { return key == "PATH" || key == "HOME" || key == "PYTHONPATH" }

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// asMap reads variables that a compose file may also write as a list of KEY=value.
func asMap(v any) map[string]any {
	if m, ok := v.(map[string]any); ok {
		return m
	}
	out := map[string]any{}
	list, _ := v.([]any)
	for _, one := range list {
		key, value, _ := strings.Cut(fmt.Sprint(one), "=")
		out[key] = value
	}
	return out
}

// isWorkflow reports whether a file is a workflow of GitHub Actions.
func isWorkflow(name string) bool {
	ext := path.Ext(name)
	return path.Dir(name) == ".github/workflows" && (ext == ".yml" || ext == ".yaml")
}

// isCompose reports whether a file at the top says what runs beside the repository's program.
func isCompose(name string) bool {
	return slices.Contains([]string{"compose.yml", "compose.yaml", "docker-compose.yml", "docker-compose.yaml"}, name)
}

// startScript is what runs before each command, "" for nothing.
func (p *Plan) startScript() string {
	all := ""
	for _, one := range p.Services {
		if one.Lacks == "" {
			all += one.start
		}
	}
	if all != "" {
		all = startHead + all + `exec "$@"` + "\n"
	}
	return all
}
