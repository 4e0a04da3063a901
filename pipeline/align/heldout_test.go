package align

import "testing"

// Of pairs that no rule was chosen by, none is named wrongly.
func TestHeldOut(t *testing.T) {
	t.Parallel()
	found := 0
	for _, p := range heldOut {
		n := len(Against(p.fixed, p.plan))
		if p.clash && n > 0 {
			found++
		}
		if !p.clash && n+len(Between(p.fixed, p.plan)) > 0 {
			t.Errorf("%q, %q: %v", p.fixed, p.plan, Against(p.fixed, p.plan))
		}
	}
	t.Logf("%d of 30 contradictions are found", found)
	if found < 16 {
		t.Errorf("%d of 30 contradictions are found, 16 were", found)
	}
}

// heldOut are pairs in the words of issues and design notes: what is fixed, a plan, and
// whether they contradict each other. Do not choose rules by them.
var heldOut = []struct {
	fixed, plan string
	clash       bool
}{
	{"The booking service keeps its data in PostgreSQL.", "Reservations live in MongoDB, one document for each guest.", true},
	{"Persistence: SQLite, a single file beside the binary.", "Persistence: Redis", true},
	{"Our datastore is MariaDB 10.6.", "The readings are persisted in DynamoDB.", true},
	{"The primary database is MySQL 8.", "The new primary database is CockroachDB.", true},
	{"Clients talk to the scheduler over gRPC.", "The scheduler exposes a REST API for its clients.", true},
	{"The public API is GraphQL only.", "The public API is REST, versioned by path.", true},
	{"Sign-in happens through SAML.", "Sign-in happens with a username and a password.", true},
	{"Staff authenticate with LDAP.", "Authentication is handled by OAuth 2.0.", true},
	{"Sessions are JWTs.", "Sessions are server-side cookies.", true},
	{"The tracker must run on Node 18.", "We require Node 22.", true},
	{"Minimum supported Python: 3.9", "The importer needs Python 3.12 or later.", true},
	{"The plugin compiles with Java 8.", "The code targets Java 21.", true},
	{"The firmware uploader is limited to 2 MB per image.", "Images of up to 16 MB are accepted.", true},
	{"An invoice PDF must not be larger than 300 kB.", "Invoice PDFs are at most 1 MB.", true},
	{"The quote is returned within 300 ms.", "The quote is returned within 1.5 s.", true},
	{"Max response time of the pricing endpoint: 150 ms", "Max response time of the pricing endpoint: 400 ms", true},
	{"A heartbeat times out after 30 s.", "The heartbeat has a timeout of 2 minutes.", true},
	{"The gateway is reachable on port 443.", "The gateway runs on port 9443.", true},
	{"Listen port: 5432", "Listen port: 6543", true},
	{"API fields are named in camelCase.", "API fields are named in snake_case.", true},
	{"All dates in the API are RFC 3339.", "Dates in the API are epoch seconds.", true},
	{"Time zone: UTC", "Time zone: America/New_York", true},
	{"Dependencies are managed with Poetry.", "Run pip install requests to add the client.", true},
	{"We use Yarn.", "Package manager: npm", true},
	{"Everything we ship is MIT-licensed; copyleft is not allowed.", "The charting code is AGPL-3.0.", true},
	{"Runtime dependencies are not allowed.", "Adds a runtime dependency on lodash.", true},
	{"Sending a receipt is asynchronous.", "Sending a receipt is synchronous.", true},
	{"The checkout waits until the payment is confirmed.", "The payment is confirmed by a background job.", true},
	{"The kiosk's display is 480 px wide.", "The layout requires a width of at least 800 px.", true},
	{"Must run in Chrome 60.", "Minimum browser version: Chrome 100", true},

	{"The booking service keeps its data in PostgreSQL.", "Old reservations are read from the MongoDB dump once, then the dump is deleted.", false},
	{"Persistence: SQLite, a single file beside the binary.", "Redis was weighed and dropped: one more process to run.", false},
	{"Our datastore is MariaDB 10.6.", "The test suite starts MariaDB in a container; MySQL 8 would differ in JSON functions.", false},
	{"The primary database is MySQL 8.", "Metrics stay in Prometheus, sessions in Redis as today.", false},
	{"Clients talk to the scheduler over gRPC.", "The health check is a plain HTTP GET.", false},
	{"The public API is GraphQL only.", "The vendor's REST API is called by the importer.", false},
	{"Sign-in happens through SAML.", "The emergency password of the administrator is rotated.", false},
	{"Staff authenticate with LDAP.", "The mail server's OAuth token is read from the vault.", false},
	{"Sessions are JWTs.", "A cookie remembers the chosen language.", false},
	{"The tracker must run on Node 18.", "Node 22's built-in WebSocket client is not available there, so ws stays.", false},
	{"Minimum supported Python: 3.9", "match statements are Python 3.10, so an if chain it is.", false},
	{"The plugin compiles with Java 8.", "CI runs the tests on Java 8, 11 and 21.", false},
	{"The firmware uploader is limited to 2 MB per image.", "The flash has 16 MB.", false},
	{"An invoice PDF must not be larger than 300 kB.", "Today's invoice PDFs are 1 MB because of the embedded font.", false},
	{"The quote is returned within 300 ms.", "The batch of all quotes runs for 20 minutes at night.", false},
	{"Max response time of the pricing endpoint: 150 ms", "The job that refreshes prices has a time-out of 30 s.", false},
	{"A heartbeat times out after 30 s.", "A heartbeat is sent every 10 s.", false},
	{"The gateway is reachable on port 443.", "The database listens on port 5432.", false},
	{"Listen port: 5432", "The proxy forwards to port 5432 of the replica.", false},
	{"API fields are named in camelCase.", "Database columns are snake_case.", false},
	{"All dates in the API are RFC 3339.", "The log file has epoch seconds, as before.", false},
	{"Time zone: UTC", "The calendar shows the user's own time zone, such as America/New_York.", false},
	{"Dependencies are managed with Poetry.", "The Dockerfile does pip install poetry and then poetry install.", false},
	{"We use Yarn.", "npm audit reports one finding, which yarn upgrade resolves.", false},
	{"Everything we ship is MIT-licensed; copyleft is not allowed.", "GPL-licensed fonts are not bundled.", false},
	{"Runtime dependencies are not allowed.", "The dependency on lodash goes away.", false},
	{"Sending a receipt is asynchronous.", "The database write is synchronous.", false},
	{"The checkout waits until the payment is confirmed.", "A background job deletes abandoned carts.", false},
	{"The kiosk's display is 480 px wide.", "The poster image is 1200 px wide and scaled down.", false},
	{"Must run in Chrome 60.", "Optional chaining needs Chrome 80, so the build transpiles it.", false},
}
