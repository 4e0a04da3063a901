package align

import "testing"

// What is denied, past, complained of, asked of others or out of scope contradicts nothing.
func TestSaidOtherwise(t *testing.T) {
	for _, c := range [][2]string{
		{"Must support IE11.", "React 18 cannot be used because of IE11."},
		{"Must support IE11.", "We stay on React 17 until IE11 is gone, then React 18."},
		{"Must support IE11.", "React 18 would break IE11, so React 17 stays."},
		{"Must support IE11.", "Unlike React 18, React 17 runs in IE11."},
		{"Must support IE11.", "React 17 rather than React 18."},
		{"Must support IE11.", "An upgrade to React 18 is out of scope."},
		{"Must support IE11.", "Avoid React 18."},
		{"Must support IE11.", "React 18 is ruled out by IE11."},
		{"Search must answer within 200 ms.", "Today search takes 2 s."},
		{"Search must answer within 200 ms.", "Search currently takes 2 s."},
		{"Search must answer within 200 ms.", "At the moment, search answers within 2 s."},
		{"Search must answer within 200 ms.", "Right now search answers in 2 s."},
		{"Search must answer within 200 ms.", "Before the change, search answered within 2 s."},
		{"Search must answer within 200 ms.", "Without the index, search answers within 2 s."},
		{"Search must answer within 200 ms.", "Users complain that search takes 2 s."},
		{"Search must answer within 200 ms.", "Search takes 2 s, which is too slow."},
		{"We use yarn.", "Users install it with npm install -g app."},
		{"No new dependencies.", "A new dependency such as axios is not needed."},
		{"No new dependencies.", "Rather than adding axios, use fetch."},
		{"No new dependencies.", "Adding axios is avoided."},
		{"No new dependencies.", "Remove the dependency axios."},
		{"No new dependencies.", "Upgrade the dependency axios to 1.7."},
		{"No new dependencies.", "A dependency between the two modules is added."},
		{"No new dependencies.", "Add a dependency from parser to lexer."},
		{"No new dependencies.", "npm install is run in CI."},
		{"Use pnpm.", "npm install is replaced by pnpm install."},
		{"The service listens on port 8080.", "Port 3000 is taken by the other service."},
		{"The service listens on port 8080.", "The service no longer listens on port 3000."},
		{"The service listens on port 8080.", "Move it from port 3000 to port 8080."},
		{"The service listens on port 8080.", "The service listens on port 8080 instead of port 3000."},
		{"Requires Go 1.21.", "Go 1.23 features are avoided."},
		{"Requires Go 1.21.", "min and max of Go 1.21 are used, not slices.Chunk of Go 1.23."},
		{"Requires Go 1.21.", "Once we are on Go 1.23, iterators can replace it."},
		{"Requires Go 1.21.", "Does not need Go 1.23."},
		{"All times are UTC.", "The input's local time is converted to UTC."},
		{"All times are UTC.", "Times of Europe/Berlin are turned into UTC when they are read."},
		{"JSON keys are snake_case.", "camelCase keys of the vendor's JSON are mapped to snake_case."},
		{"JSON keys are snake_case.", "camelCase in JSON is refused with 400."},
		{"The database is PostgreSQL.", "MySQL is not an option."},
		{"The database is PostgreSQL.", "The adapter for MySQL is deleted."},
		{"The database is PostgreSQL.", "Only PostgreSQL is supported, MySQL isn't."},
		{"Dates in JSON are ISO 8601.", "Unix timestamps in JSON are rejected with a clear error."},
		{"Uploads are at most 5 MB.", "An upload of 10 MB is refused."},
		{"Uploads are at most 5 MB.", "A test uploads 10 MB and expects 413."},
		{"Uploads are at most 5 MB.", "Uploads over 10 MB are logged."},
		{"The smallest screen is 320 px.", "At 1024 px the sidebar appears."},
		{"The smallest screen is 320 px.", "The design was drawn for 1024 px; it also has to fit 320 px."},
		{"Login is by OAuth.", "The password login is removed."},
		{"The API is REST.", "GraphQL was considered."},
		{"Must support IE11.", "React 18 n'est pas utilisé."},
		{"Must support IE11.", "React 18 wird nicht verwendet."},
		{"Must support IE11.", "No se usa React 18."},
		{"Must support IE11.", "Kein React 18."},
	} {
		for _, found := range [][]Contradiction{Against(c[0], c[1]), Between(c[0], c[1])} {
			if len(found) > 0 {
				t.Errorf("%q, %q: %v", c[0], c[1], found)
			}
		}
	}
}

// What a sentence says there is one of is a fact, without a deed; of two modules, too.
func TestDeclared(t *testing.T) {
	for _, c := range [][2]string{
		{"The API is REST.", "The API is GraphQL."},
		{"API style: REST.", "API style: gRPC."},
		{"Authentication uses JWT.", "Authentication uses session cookies."},
		{"The database is PostgreSQL.", "The database is MongoDB."},
		{"Database: PostgreSQL 15", "Database: MongoDB"},
		{"The package manager is pnpm.", "Install with yarn add."},
		{"Port: 8080", "Port: 3000"},
	} {
		if len(Against(c[0], c[1])) == 0 || len(Between(c[0], c[1])) == 0 {
			t.Errorf("%q, %q: not found", c[0], c[1])
		}
		if found := Between(c[0], c[0]); len(found) > 0 {
			t.Errorf("%q against itself: %v", c[0], found)
		}
	}
	for _, c := range [][2]string{
		{"The admin API is REST.", "The public API is GraphQL."},
		{"The database is PostgreSQL.", "The database of the tests is SQLite."},
		{"The database is PostgreSQL.", "The database is PostgreSQL, the cache is Redis."},
	} {
		if found := Between(c[0], c[1]); len(found) > 0 {
			t.Errorf("%q, %q: %v", c[0], c[1], found)
		}
	}
}
