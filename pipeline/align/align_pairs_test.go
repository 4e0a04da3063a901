package align

import "testing"

// What is denied, past, complained of, asked of others or out of scope contradicts nothing.
func TestSaidOtherwise(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

// What reads like a declaration and is none: it is of a part, of some case, of a thing beside
// the noun, or says no more than that one of two is there.
func TestNotDeclared(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"The database is PostgreSQL.", "Database: MySQL driver removed"},
		{"The database is PostgreSQL.", "The database is MongoDB for the audit log."},
		{"The database is PostgreSQL.", "The database is SQLite when no address is set."},
		{"The database is PostgreSQL.", "The database is SQLite, unless an address is set."},
		{"The database is PostgreSQL.", "Storage: MySQL dumps are read once."},
		{"The database is PostgreSQL.", "| Database | MySQL or PostgreSQL |"},
		{"Use PostgreSQL.", "Use SQLite in the tests."},
		{"We store data in PostgreSQL.", "The session data is stored in MySQL."},
		{"We store data in PostgreSQL.", "The audit service keeps its data in SQLite."},
		{"Login is by OAuth.", "Login: password field is cleared after a failure."},
		{"Login is by OAuth.", "Login: password managers fill the form."},
		{"Users log in with OAuth.", "Users log in with a password as well."},
		{"Users log in with OAuth.", "Users can log in with a password, too, until May."},
		{"Staff log in with LDAP.", "Staff log in with a password."},
		{"Authentication: OAuth 2.0", "Authentication uses JWT."},
		{"Authentication: OAuth 2.0", "The password of the database is read from a file."},
		{"API style: REST.", "API: GraphQL schema is deleted."},
		{"The API is REST.", "The search API is GraphQL."},
		{"Time zone: UTC", "The user's time zone is Europe/Berlin in the example."},
		{"Port: 8080", "Port: 3000 in development"},
		{"Port: 8080", "Database port: 5432"},
		{"Port: 8080", "The port is 25 for SMTP."},
		{"The call is synchronous.", "The logging call is asynchronous."},
		{"Export is synchronous.", "Import runs in the background."},
		{"Export is synchronous.", "Export is not synchronous with the import."},
		{"The handler waits for the mail to be sent.", "The report is sent in the background."},
		{"Oldest browser: Safari 12.", "Tested in Safari 16, the oldest browser on the test machine."},
		{"Go 1.21 is the oldest supported version.", "slices.Chunk needs Go 1.23, so a loop it is."},
		{"PHP 7.4 is supported.", "PHP 8.2 is supported."},
		{"Support screens from 320 px.", "The hero image has a minimum width of 1024 px."},
		{"Support screens from 320 px.", "Tables get a second column on 1024 px wide screens."},
		{"Support screens from 320 px.", "The cropper needs at least 1024 px of the original."},
		{"Search latency p95: 200 ms.", "Search cache lifetime: 500 ms."},
		{"Search latency p95: 200 ms.", "Export latency p95: 900 ms."},
		{"Do not use GPL code.", "The library is not licensed under GPL-3.0."},
		{"Do not use GPL code.", "The library is licensed under LGPL-2.1."},
		{"Only MIT or Apache-2.0 dependencies.", "Uses a library under MIT."},
		{"No new dependencies.", "Uses github.com/pkg/errors as before."},
		{"The standard library only.", "Uses github.com/acme/shop/internal/cart."},
		{"The package manager is pnpm.", "Package manager: npm is not needed."},
		{"## Database\nPostgreSQL 16.", "## Database\nThe index of MySQL's documentation was read."},
	} {
		for i, found := range [][]Contradiction{Against(c[0], c[1]), Between(c[0], c[1])} {
			if len(found) > 0 {
				t.Errorf("%q, %q (%d): %v", c[0], c[1], i, found)
			}
		}
	}
}

// What design notes say plainly is found.
func TestPlainContradictions(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"The smallest screen is 320 px.", "The layout needs at least 1024 px."},
		{"Support screens from 320 px.", "Minimum width: 1024 px."},
		{"Must work on 320 px wide phones.", "The page has a minimum width of 1024 px."},
		{"Supported browsers: Internet Explorer 11 and up.", "The client is written with React 18."},
		{"Oldest browser: IE11.", "Framework: React 18."},
		{"Oldest browser: Safari 12.", "Oldest browser: Safari 16."},
		{"Go 1.21 is the oldest supported version.", "Requires Go 1.23."},
		{"We support Node 16.", "Needs Node 20 or newer."},
		{"Runs on Python 3.8.", "Requires Python 3.11."},
		{"Java 11.", "Java 17 is required."},
		{"PHP 7.4 is supported.", "Requires PHP 8.2."},
		{"Ruby 2.7 has to work.", "Requires Ruby 3.2."},
		{"The API is REST.", "The API is GraphQL."},
		{"Use REST for the API.", "We build a GraphQL API."},
		{"API style: REST.", "API style: gRPC."},
		{"Our API is a REST API.", "The endpoint is served over GraphQL."},
		{"Login is by OAuth.", "Login is by password."},
		{"Users log in with OAuth.", "Users log in with a password."},
		{"Authentication uses JWT.", "Authentication uses session cookies."},
		{"Authentication: OAuth 2.0", "Authentication: basic auth"},
		{"The database is PostgreSQL.", "The database is MongoDB."},
		{"We store data in PostgreSQL.", "The data is stored in MySQL."},
		{"Use PostgreSQL.", "Use SQLite."},
		{"Database: PostgreSQL 15", "Database: MongoDB"},
		{"Search must answer within 200 ms.", "Search answers within 2 s."},
		{"The search responds in under 200 ms.", "The search responds in at most 500 ms."},
		{"Search latency p95: 200 ms.", "Search latency p95: 500 ms."},
		{"Uploads are at most 5 MB.", "Uploads are at most 10 MB."},
		{"Uploads are limited to 5 MB.", "Uploads up to 10 MB are accepted."},
		{"The service listens on port 8080.", "The service listens on port 3000."},
		{"Port: 8080", "Port: 3000"},
		{"JSON keys are snake_case.", "JSON keys are camelCase."},
		{"Use snake_case in JSON.", "Field names in JSON are camelCase."},
		{"Dates in JSON are ISO 8601.", "Dates in JSON are Unix timestamps."},
		{"Timestamps are ISO 8601 strings.", "Timestamps are epoch milliseconds."},
		{"All times are UTC.", "Times are kept in Europe/Berlin."},
		{"Use pnpm.", "Run npm install to add it."},
		{"The package manager is pnpm.", "Install with yarn add."},
		{"Only MIT or Apache-2.0 dependencies.", "Uses a library under GPL-3.0."},
		{"Do not use GPL code.", "The library is licensed under GPL-3.0."},
		{"No new dependencies.", "Add the dependency axios."},
		{"Do not add dependencies.", "Install axios with npm install axios."},
		{"The standard library only.", "Uses github.com/pkg/errors."},
		{"The call is synchronous.", "The call is asynchronous."},
		{"Export is synchronous: the caller waits.", "Export runs in the background."},
		{"The handler waits for the mail to be sent.", "The mail is sent in the background."},
	} {
		if len(Against(c[0], c[1])) == 0 {
			t.Errorf("%q, %q: not found", c[0], c[1])
		}
		if found := Against(c[0], c[0]); len(found) > 0 {
			t.Errorf("%q against itself: %v", c[0], found)
		}
	}
	for _, c := range [][2]string{
		{"## Database\nPostgreSQL 16.", "- **Database**: MongoDB"},
		{"| Matter | Choice |\n| --- | --- |\n| Database | PostgreSQL |\n| API | REST |", "Our API is GraphQL."},
	} {
		if len(Between(c[0], c[1])) == 0 {
			t.Errorf("%q, %q: not found", c[0], c[1])
		}
	}
}
