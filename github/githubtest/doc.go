// Package githubtest is a GitHub that runs on this machine and speaks the real
// protocol: App authentication, REST under /api/v3, GraphQL under /api/graphql,
// git over HTTP, signed webhooks, signing people in to the App (OAuth's web flow),
// and pages where a person can click. The
// end-to-end tests, `forge demo` and the laboratory run against it; what Forge sends
// to it is byte for byte what it would send to GitHub.
//
// People, issues, pull requests, reviews, check runs, installations and
// deliveries are kept in memory behind one mutex. The repositories are real bare
// git repositories in a temporary folder, served by `git http-backend`. Close
// stops everything and removes the folder; nothing outlives the server.
//
// It is strict where GitHub is strict: the App's manifest and a table of
// permissions decide what a token may do, review comments must lie in the diff, a
// workflow file needs the permission for it. What GitHub does only sometimes
// (failures, limits, lost or repeated deliveries) happens on demand: see Fault
// and DeliveryFaults. With a Contract, every request, answer and webhook is held
// against GitHub's own descriptions.
package githubtest
